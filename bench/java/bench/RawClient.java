package bench;

import java.io.BufferedInputStream;
import java.io.Closeable;
import java.io.EOFException;
import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.net.InetSocketAddress;
import java.net.Socket;
import java.net.SocketTimeoutException;
import org.apache.thrift.TException;
import org.apache.thrift.protocol.TBinaryProtocol;
import org.apache.thrift.protocol.TMessage;
import org.apache.thrift.protocol.TMessageType;
import org.apache.thrift.protocol.TProtocolUtil;
import org.apache.thrift.protocol.TType;
import org.apache.thrift.transport.TIOStreamTransport;

/**
 * Sends encoded calls and times them to the last byte of the reply. It decodes nothing.
 *
 * <p>Replies of the unframed protocol don't say how long they are. One whose length is not known is walked to its end,
 * which costs time of our own where it is long; so a long reply is walked once and afterwards read by its length.
 */
public final class RawClient implements Closeable {
    private static final int PATIENCE_MILLIS = 600_000;
    private static final int REST_MILLIS = 5_000;
    private static final int BUFFER_BYTES = 1 << 18;

    private final Socket socket = new Socket();
    private final CountedStream in;
    private final TBinaryProtocol protocol;
    private final OutputStream out;
    private final byte[] buffer = new byte[BUFFER_BYTES];

    public RawClient(String host, int port) throws IOException, TException {
        socket.setTcpNoDelay(true);
        socket.setSoTimeout(PATIENCE_MILLIS);
        socket.connect(new InetSocketAddress(host, port));
        in = new CountedStream(socket.getInputStream());
        // It asks for single bytes. What it reads ahead ends with the reply, since nothing else was asked for.
        protocol = new TBinaryProtocol(new TIOStreamTransport(new BufferedInputStream(in, BUFFER_BYTES)));
        out = socket.getOutputStream();
    }

    /** Calls and walks the reply to its end; nanoseconds and the reply's length. */
    public long[] walk(byte[] request) throws IOException, TException {
        socket.setSoTimeout(PATIENCE_MILLIS);
        in.count = 0;
        long began = System.nanoTime();
        out.write(request);
        TMessage message = protocol.readMessageBegin();
        if (message.type != TMessageType.REPLY) {
            TProtocolUtil.skip(protocol, TType.STRUCT, 1 << 10);
            throw new IOException(message.name + " was refused");
        }
        protocol.readStructBegin();
        short outcome = 0;
        for (var field = protocol.readFieldBegin(); field.type != TType.STOP; field = protocol.readFieldBegin()) {
            outcome = field.id;
            TProtocolUtil.skip(protocol, field.type, 1 << 10);
        }
        long nanos = System.nanoTime() - began;
        if (outcome != 0) {
            throw new IOException(message.name + " was answered with an exception (field " + outcome + " of its result)");
        }
        return new long[] {nanos, in.count};
    }

    /** A reply of another length than the one before. Its connection can't be used any more. */
    public static final class ReplyChanged extends IOException {
        ReplyChanged(String message) {
            super(message);
        }
    }

    /** Calls and reads a reply of so many bytes; nanoseconds. */
    public long time(byte[] request, long length) throws IOException {
        socket.setSoTimeout(PATIENCE_MILLIS);
        long began = System.nanoTime();
        out.write(request);
        long left = length;
        int last = 0;
        while (left > 0) {
            int read;
            try {
                read = in.read(buffer, 0, (int) Math.min(left, buffer.length));
            } catch (SocketTimeoutException error) {
                if (left == length) {
                    throw error;
                }
                throw new ReplyChanged("the reply is shorter than the one before, or its rest doesn't come");
            }
            if (read < 0) {
                throw new EOFException("the server hung up " + left + " bytes before the reply's end");
            }
            if (left == length) {
                socket.setSoTimeout(REST_MILLIS);
            }
            left -= read;
            last = buffer[read - 1];
        }
        long nanos = System.nanoTime() - began;
        if (last != TType.STOP || socket.getInputStream().available() > 0) {
            throw new ReplyChanged("the reply is longer than the one before");
        }
        return nanos;
    }

    @Override
    public void close() throws IOException {
        socket.close();
    }

    private static final class CountedStream extends InputStream {
        private final InputStream under;
        private long count;

        CountedStream(InputStream under) {
            this.under = under;
        }

        @Override
        public int read() throws IOException {
            throw new UnsupportedOperationException("single bytes are slow");
        }

        @Override
        public int read(byte[] bytes, int offset, int length) throws IOException {
            int read = under.read(bytes, offset, length);
            count += Math.max(read, 0);
            return read;
        }

        @Override
        public int available() throws IOException {
            return under.available();
        }
    }
}
