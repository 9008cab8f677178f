package courser.conformance;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotNull;
import static org.junit.jupiter.api.Assertions.assertThrows;

import com.rabbitmq.client.AMQP;
import com.rabbitmq.client.Channel;
import com.rabbitmq.client.Connection;
import com.rabbitmq.client.ConnectionFactory;
import com.rabbitmq.client.Delivery;
import com.rabbitmq.client.ShutdownSignalException;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import java.util.UUID;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.function.Executable;

/** What the tests share: connections that are closed behind them. COURSER_TEST_URI says where the broker is. */
abstract class Broker {
    /** Nothing that the broker has to do takes longer. */
    static final int PATIENCE_MS = 20_000;

    private final List<Connection> connections = new ArrayList<>();

    /** A name that no other test and no earlier run has used. */
    static String fresh(String kind) {
        return "conformance." + kind + "." + UUID.randomUUID().toString().substring(24);
    }

    static byte[] bytes(String text) {
        return text.getBytes(StandardCharsets.UTF_8);
    }

    static String text(byte[] bytes) {
        return new String(bytes, StandardCharsets.UTF_8);
    }

    static ConnectionFactory factory() throws Exception {
        ConnectionFactory factory = new ConnectionFactory();
        String uri = System.getenv("COURSER_TEST_URI");
        factory.setUri(uri == null ? "amqp://guest:guest@127.0.0.1:5672/%2F" : uri);
        factory.setAutomaticRecoveryEnabled(false);
        factory.setChannelRpcTimeout(PATIENCE_MS);
        return factory;
    }

    Connection connect() throws Exception {
        return connect(factory());
    }

    Connection connect(ConnectionFactory factory) throws Exception {
        Connection connection = factory.newConnection();
        connections.add(connection);
        return connection;
    }

    /** A channel on a connection of its own. */
    Channel open() throws Exception {
        return connect().createChannel();
    }

    /** Such a channel in confirm mode. */
    Channel openConfirming() throws Exception {
        Channel channel = open();
        channel.confirmSelect();
        return channel;
    }

    @AfterEach
    void closeConnections() throws IOException {
        for (Connection connection : connections) {
            if (connection.isOpen()) {
                connection.close(PATIENCE_MS);
            }
        }
    }

    /** The name of an empty queue that goes with the channel's connection. */
    static String exclusiveQueue(Channel channel) throws IOException {
        return channel.queueDeclare("", false, true, false, null).getQueue();
    }

    /** Publishes to a queue and waits until all is there. The channel is in confirm mode. */
    static void publish(Channel channel, String queue, String... bodies) throws Exception {
        for (String body : bodies) {
            channel.basicPublish("", queue, null, bytes(body));
        }
        channel.waitForConfirmsOrDie(PATIENCE_MS);
    }

    /** Takes everything out of a queue. */
    static List<String> bodies(Channel channel, String queue) throws IOException {
        List<String> taken = new ArrayList<>();
        for (var message = channel.basicGet(queue, true); message != null; message = channel.basicGet(queue, true)) {
            taken.add(text(message.getBody()));
        }
        return taken;
    }

    /** Consumes; the messages are put into the queue that this returns. */
    static BlockingQueue<Delivery> consume(Channel channel, String queue, boolean autoAck) throws IOException {
        BlockingQueue<Delivery> inbox = new LinkedBlockingQueue<>();
        channel.basicConsume(queue, autoAck, (tag, delivery) -> inbox.add(delivery), tag -> { });
        return inbox;
    }

    /** The next one, or the test fails. */
    static <T> T next(BlockingQueue<T> inbox) throws InterruptedException {
        T value = inbox.poll(PATIENCE_MS, TimeUnit.MILLISECONDS);
        assertNotNull(value, "nothing came");
        return value;
    }

    static String nextBody(BlockingQueue<Delivery> inbox) throws InterruptedException {
        return text(next(inbox).getBody());
    }

    /** The broker closes the channel because of this call, with this code and text. */
    static void assertClosesChannel(int code, String text, Executable call) {
        IOException error = assertThrows(IOException.class, call);
        assertReason(code, text, (ShutdownSignalException) error.getCause());
    }

    static void assertReason(int code, String text, ShutdownSignalException signal) {
        if (signal.getReason() instanceof AMQP.Channel.Close close) {
            assertEquals(code + " " + text, close.getReplyCode() + " " + close.getReplyText());
        } else if (signal.getReason() instanceof AMQP.Connection.Close close) {
            assertEquals(code + " " + text, close.getReplyCode() + " " + close.getReplyText());
        } else {
            throw signal;
        }
    }
}
