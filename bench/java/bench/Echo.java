package bench;

import java.io.IOException;
import java.io.InputStream;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.ServerSocket;
import java.net.Socket;

/** Gives every request of one length the reply that a server gave to the first: what client and sockets alone cost. */
public final class Echo implements AutoCloseable {
    private final ServerSocket server = new ServerSocket();
    private final int requestLength;
    private final byte[] reply;

    /** The reply is that of the server at this address; it has so many bytes. */
    public Echo(String host, int port, byte[] request, int length) throws IOException {
        requestLength = request.length;
        try (var client = new Socket(host, port)) {
            client.getOutputStream().write(request);
            reply = client.getInputStream().readNBytes(length);
        }
        server.bind(new InetSocketAddress(InetAddress.getLoopbackAddress(), 0), 1 << 10);
        start(this::accept);
    }

    public int port() {
        return server.getLocalPort();
    }

    private void accept() {
        try {
            while (true) {
                Socket client = server.accept();
                start(() -> answer(client));
            }
        } catch (IOException closed) {
            return;
        }
    }

    private void answer(Socket client) {
        try (client) {
            client.setTcpNoDelay(true);
            InputStream in = client.getInputStream();
            while (in.readNBytes(requestLength).length == requestLength) {
                client.getOutputStream().write(reply);
            }
        } catch (IOException gone) {
            return;
        }
    }

    private static void start(Runnable life) {
        var thread = new Thread(life, "echo");
        thread.setDaemon(true);
        thread.start();
    }

    @Override
    public void close() throws IOException {
        server.close();
    }
}
