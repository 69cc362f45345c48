"""Cases where engines have been wrong, by theme: what Delta's, Iceberg's and Paimon's tests try, on our tables."""
