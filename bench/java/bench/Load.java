package bench;

import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.concurrent.Callable;
import java.util.concurrent.CyclicBarrier;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;

/** Many clients that send the same call, each as soon as it was answered. */
public final class Load {
    private Load() {}

    /** Runs so many clients for so long; the nanoseconds of every call, each in eight bytes. */
    public static byte[] run(String host, int port, byte[] request, int clients, long millis) throws Exception {
        var ready = new CyclicBarrier(clients);
        List<Callable<long[]>> tasks = new ArrayList<>();
        for (int number = 0; number < clients; number++) {
            tasks.add(() -> client(host, port, request, ready, millis));
        }
        return timesOf(tasks);
    }

    private static byte[] timesOf(List<Callable<long[]>> tasks) throws Exception {
        ExecutorService threads = Executors.newFixedThreadPool(tasks.size());
        try {
            List<long[]> all = new ArrayList<>();
            for (Future<long[]> one : threads.invokeAll(tasks)) {
                all.add(one.get());
            }
            var bytes = ByteBuffer.allocate(8 * all.stream().mapToInt(times -> times.length).sum());
            all.forEach(times -> Arrays.stream(times).forEach(bytes::putLong));
            return bytes.array();
        } finally {
            threads.shutdown();
        }
    }

    /** Each client makes the calls of its own round again and again, and reads each reply to its end. */
    public static byte[] runRounds(String host, int port, List<List<byte[]>> rounds, long millis) throws Exception {
        var ready = new CyclicBarrier(rounds.size());
        List<Callable<long[]>> tasks = new ArrayList<>();
        for (List<byte[]> round : rounds) {
            tasks.add(() -> rounds(host, port, round, ready, millis));
        }
        return timesOf(tasks);
    }

    private static long[] rounds(String host, int port, List<byte[]> round, CyclicBarrier ready, long millis)
            throws Exception {
        try (var client = new RawClient(host, port)) {
            ready.await();
            long end = System.nanoTime() + millis * 1_000_000;
            var times = new long[1 << 10];
            int count = 0;
            while (System.nanoTime() < end) {
                for (byte[] request : round) {
                    if (count == times.length) {
                        times = Arrays.copyOf(times, 2 * count);
                    }
                    times[count++] = client.walk(request)[0];
                }
            }
            return Arrays.copyOf(times, count);
        }
    }

    private static long[] client(String host, int port, byte[] request, CyclicBarrier ready, long millis)
            throws Exception {
        try (var client = new RawClient(host, port)) {
            long length = client.walk(request)[1];
            ready.await();
            long end = System.nanoTime() + millis * 1_000_000;
            var times = new long[1 << 10];
            int count = 0;
            while (System.nanoTime() < end) {
                if (count == times.length) {
                    times = Arrays.copyOf(times, 2 * count);
                }
                times[count++] = client.time(request, length);
            }
            return Arrays.copyOf(times, count);
        }
    }
}
