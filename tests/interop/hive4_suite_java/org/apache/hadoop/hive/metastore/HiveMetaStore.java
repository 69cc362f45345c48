package org.apache.hadoop.hive.metastore;

import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.net.URI;
import java.util.concurrent.atomic.AtomicBoolean;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.hive.metastore.security.HadoopThriftAuthBridge;

/**
 * Stands before Hive's server for the tests that start one themselves: on the port where they expect it, this passes the
 * bytes of every connection on to the server that the system property `metastore.thrift.uris` names.
 */
public final class HiveMetaStore {
  private HiveMetaStore() {}

  public static void startMetaStore(
      int port, HadoopThriftAuthBridge bridge, Configuration conf, boolean housekeeping, AtomicBoolean started)
      throws IOException {
    if (started != null) {
      started.set(true);
    }
    URI server = URI.create(System.getProperty("metastore.thrift.uris"));
    try (ServerSocket listening = new ServerSocket(port, 50, InetAddress.getLoopbackAddress())) {
      while (true) {
        Socket client = listening.accept();
        Socket behind = new Socket(server.getHost(), server.getPort());
        pass(client, behind);
        pass(behind, client);
      }
    }
  }

  private static void pass(Socket from, Socket to) {
    Thread thread = new Thread(() -> {
      try (InputStream input = from.getInputStream(); OutputStream output = to.getOutputStream()) {
        input.transferTo(output);
      } catch (IOException closed) {
        // One of the two has ended the connection. Closing the streams ends it for the other.
      }
    });
    thread.setDaemon(true);
    thread.start();
  }
}
