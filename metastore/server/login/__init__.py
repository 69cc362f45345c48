"""How clients come in: encryption, negotiation, HTTP. What a connection does before its first Thrift message.

    Detecting    → Handshaking, Negotiating, and the states of `metastore.server.connection`
    Handshaking  → Detecting (what is within TLS)
    Negotiating  → Receiving

What stays is a layer between the connection and its transport: TLS, frames of SASL, requests of HTTP. Plain Thrift has
none. `progress.Progress` bounds time and bytes until somebody has logged in.
"""
