package lake.metastore.spark;

import java.util.Arrays;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.util.ArrayData;
import org.apache.spark.sql.catalyst.util.MapData;
import org.apache.spark.sql.types.ArrayType;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.MapType;
import org.apache.spark.sql.types.StringType;
import org.apache.spark.sql.types.StructType;

/** Whether values in Spark's internal form are the same, by the rules of lake/tables/keyed/versions.py. */
final class Values {
    private Values() {}

    /** The type by which values are compared and ordered: texts by their bytes, whatever their collation is. */
    static DataType plain(DataType type) {
        return type instanceof StringType ? DataTypes.StringType : type;
    }

    /** Nulls are the same, and so are NaNs. The entries of maps are compared in their order. */
    static boolean areSame(Object one, Object other, DataType type) {
        if (one == null || other == null) {
            return one == other;
        } else if (type instanceof StructType) {
            return areSameRows((InternalRow) one, (InternalRow) other, (StructType) type);
        } else if (type instanceof ArrayType) {
            return areSameLists((ArrayData) one, (ArrayData) other, ((ArrayType) type).elementType());
        } else if (type instanceof MapType) {
            MapData some = (MapData) one;
            MapData others = (MapData) other;
            return areSameLists(some.keyArray(), others.keyArray(), ((MapType) type).keyType())
                    && areSameLists(some.valueArray(), others.valueArray(), ((MapType) type).valueType());
        } else if (one instanceof byte[]) {
            return Arrays.equals((byte[]) one, (byte[]) other);
        } else if (one instanceof Double || one instanceof Float) {
            double left = ((Number) one).doubleValue();
            double right = ((Number) other).doubleValue();
            return left == right || (Double.isNaN(left) && Double.isNaN(right));
        }
        return one.equals(other);
    }

    private static boolean areSameRows(InternalRow one, InternalRow other, StructType type) {
        for (int i = 0; i < type.size(); i++) {
            DataType field = type.apply(i).dataType();
            Object value = one.isNullAt(i) ? null : one.get(i, field);
            if (!areSame(value, other.isNullAt(i) ? null : other.get(i, field), field)) {
                return false;
            }
        }
        return true;
    }

    private static boolean areSameLists(ArrayData one, ArrayData other, DataType type) {
        if (one.numElements() != other.numElements()) {
            return false;
        }
        for (int i = 0; i < one.numElements(); i++) {
            Object value = one.isNullAt(i) ? null : one.get(i, type);
            if (!areSame(value, other.isNullAt(i) ? null : other.get(i, type), type)) {
                return false;
            }
        }
        return true;
    }
}
