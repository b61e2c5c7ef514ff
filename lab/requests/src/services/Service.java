import com.sun.net.httpserver.HttpServer;
import java.net.InetSocketAddress;
import java.util.HashMap;

/** A service with a table of a hundred thousand rows of a kilobyte. A request converts a row to text. */
class Service {
    public static void main(String[] words) throws Exception {
        var table = new HashMap<Integer, byte[]>();
        for (int row = 0; row < 100_000; row++) table.put(row, new byte[1000]);
        var server = HttpServer.create(new InetSocketAddress("127.0.0.1", Integer.parseInt(words[0])), 64);
        server.createContext("/", exchange -> {
            byte[] row = table.get(Integer.parseInt(exchange.getRequestURI().getPath().substring(1)));
            var text = new StringBuilder();
            for (byte part : row) text.append((int) part).append(',');
            byte[] answer = text.toString().getBytes();
            exchange.sendResponseHeaders(200, answer.length);
            exchange.getResponseBody().write(answer);
            exchange.close();
        });
        server.start();
    }
}
