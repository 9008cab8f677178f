package courser.conformance;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.rabbitmq.client.AMQP;
import com.rabbitmq.client.Channel;
import com.rabbitmq.client.ConnectionFactory;
import com.rabbitmq.client.GetResponse;
import com.rabbitmq.client.LongString;
import com.rabbitmq.client.Return;
import java.math.BigDecimal;
import java.util.ArrayList;
import java.util.Date;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.ConcurrentSkipListSet;
import java.util.concurrent.LinkedBlockingQueue;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** Messages: confirmed, returned, routed, consumed, given back, and unchanged on the way. */
class MessageTest extends Broker {
    @Test
    void confirmsInFlight() throws Exception {
        Channel channel = openConfirming();
        String queue = exclusiveQueue(channel);
        var outstanding = new ConcurrentSkipListSet<Long>();
        BlockingQueue<Boolean> done = new LinkedBlockingQueue<>();
        channel.addConfirmListener((tag, multiple) -> {
            if (multiple) {
                outstanding.headSet(tag, true).clear();
            } else {
                outstanding.remove(tag);
            }
            if (tag == 5000 || outstanding.isEmpty()) {
                done.add(true);
            }
        }, (tag, multiple) -> done.add(false));
        for (long tag = 1; tag <= 5000; tag++) {
            outstanding.add(tag);
        }
        for (int number = 1; number <= 5000; number++) {
            channel.basicPublish("", queue, null, bytes("" + number));
        }
        while (!outstanding.isEmpty()) {
            assertTrue(next(done), "nothing was nacked");
        }
        List<String> bodies = bodies(channel, queue);
        assertEquals(5000, bodies.size());
        assertEquals("5000", bodies.get(4999));
    }

    @Test
    void aMandatoryMessageComesBackBeforeItsConfirm() throws Exception {
        Channel channel = openConfirming();
        BlockingQueue<Return> returned = new LinkedBlockingQueue<>();
        channel.addReturnListener(returned::add);
        var properties = new AMQP.BasicProperties.Builder().messageId("7").build();
        for (int number = 0; number < 50; number++) {
            channel.basicPublish("amq.direct", "nowhere", true, properties, bytes("" + number));
            channel.waitForConfirmsOrDie(PATIENCE_MS);
            Return message = returned.remove(); // it is there already
            assertEquals(312, message.getReplyCode());
            assertEquals("NO_ROUTE", message.getReplyText());
            assertEquals("7", message.getProperties().getMessageId());
            assertEquals("" + number, text(message.getBody()));
        }
    }

    private static byte[] patterned(int size) {
        byte[] body = new byte[size];
        for (int index = 0; index < size; index++) {
            body[index] = (byte) (index % 251);
        }
        return body;
    }

    @ParameterizedTest
    @ValueSource(ints = {0, 1, 4087, 4088, 4089, 131064, 131065, 1 << 20, 10 << 20})
    void aBodyOfAnySize(int size) throws Exception {
        for (int frameMax : new int[] {0, 4096}) {
            ConnectionFactory factory = factory();
            factory.setRequestedFrameMax(frameMax);
            Channel channel = connect(factory).createChannel();
            String queue = exclusiveQueue(channel);
            var inbox = consume(channel, queue, true);
            channel.basicPublish("", queue, null, patterned(size));
            assertArrayEquals(patterned(size), next(inbox).getBody());
        }
    }

    @Test
    void propertiesComeBack() throws Exception {
        Channel channel = openConfirming();
        String queue = exclusiveQueue(channel);
        var properties = new AMQP.BasicProperties.Builder()
                .contentType("application/json").contentEncoding("gzip").headers(Map.of("k", 1)).deliveryMode(2)
                .priority(5).correlationId("c-1").replyTo("answers").expiration("60000").messageId("m-1")
                .timestamp(new Date(1609459200000L)).type("created").userId("guest").appId("conformance")
                .clusterId("cluster-1").build();
        channel.basicPublish("", queue, properties, bytes("{}"));
        channel.waitForConfirmsOrDie(PATIENCE_MS);
        assertEquals(properties, channel.basicGet(queue, true).getProps());
    }

    @Test
    void headersOfEveryTypeComeBack() throws Exception {
        Map<String, Object> headers = new LinkedHashMap<>();
        headers.put("true", true);
        headers.put("byte", Byte.MIN_VALUE);
        headers.put("short", Short.MIN_VALUE);
        headers.put("int", Integer.MIN_VALUE);
        headers.put("long", Long.MIN_VALUE);
        headers.put("float", 1.5f);
        headers.put("double", Math.PI);
        headers.put("decimal", new BigDecimal("314.15"));
        headers.put("text", "grüße");
        headers.put("time", new Date(1609459200000L));
        headers.put("void", null);
        headers.put("array", List.of(1, (short) 2, List.of(true)));
        headers.put("table", Map.of("a", 1, "b", Map.of("deep", -1L)));
        Channel channel = openConfirming();
        String queue = exclusiveQueue(channel);
        byte[] bytes = {0, -1, 0};
        var sent = new LinkedHashMap<>(headers);
        sent.put("bytes", bytes);
        channel.basicPublish("", queue, new AMQP.BasicProperties.Builder().headers(sent).build(), new byte[0]);
        channel.waitForConfirmsOrDie(PATIENCE_MS);
        var got = new LinkedHashMap<>(channel.basicGet(queue, true).getProps().getHeaders());
        assertArrayEquals(bytes, (byte[]) got.remove("bytes"));
        got.replaceAll((name, value) -> value instanceof LongString text ? text.toString() : value);
        assertEquals(headers, got);
    }

    @Test
    void everyTypeOfExchangeRoutes() throws Exception {
        Channel channel = openConfirming();
        var expected = Map.of("direct", List.of("a.b"), "topic", List.of("a.b", "a.c"), "fanout",
                List.of("a.b", "a.c", "b"), "headers", List.of("b"));
        for (String type : expected.keySet()) {
            String exchange = fresh("x");
            String queue = exclusiveQueue(channel);
            channel.exchangeDeclare(exchange, type, false, true, null);
            channel.queueBind(queue, exchange, type.equals("topic") ? "a.*" : "a.b", Map.of("is", "b"));
            for (String key : List.of("a.b", "a.c", "b")) {
                var properties = new AMQP.BasicProperties.Builder().headers(Map.of("is", key)).build();
                channel.basicPublish(exchange, key, properties, bytes(key));
            }
            channel.waitForConfirmsOrDie(PATIENCE_MS);
            assertEquals(expected.get(type), bodies(channel, queue), type);
        }
    }

    @Test
    void exchangesBindToExchanges() throws Exception {
        Channel channel = openConfirming();
        String source = fresh("x");
        String destination = fresh("x");
        channel.exchangeDeclare(source, "fanout", false, true, null);
        channel.exchangeDeclare(destination, "fanout", false, true, true, null);
        String queue = exclusiveQueue(channel);
        channel.queueBind(queue, destination, "");
        channel.exchangeBind(destination, source, "");
        channel.basicPublish(source, "", null, bytes("through"));
        channel.waitForConfirmsOrDie(PATIENCE_MS);
        assertEquals(List.of("through"), bodies(channel, queue));
    }

    @Test
    void prefetchAndAnAckOfMany() throws Exception {
        Channel channel = openConfirming();
        String queue = exclusiveQueue(channel);
        publish(channel, queue, "a", "b", "c", "d", "e");
        channel.basicQos(2);
        var inbox = consume(channel, queue, false);
        next(inbox);
        long tag = next(inbox).getEnvelope().getDeliveryTag();
        Thread.sleep(200);
        assertTrue(inbox.isEmpty());
        channel.basicAck(tag, true);
        assertEquals("c", nextBody(inbox));
        assertEquals("d", nextBody(inbox));
        Thread.sleep(100);
        assertTrue(inbox.isEmpty());
    }

    @Test
    void whatIsGivenBackKeepsItsPlace() throws Exception {
        Channel channel = openConfirming();
        String queue = exclusiveQueue(channel);
        publish(channel, queue, "a", "b", "c", "d");
        List<Long> tags = new ArrayList<>();
        for (int number = 0; number < 3; number++) {
            GetResponse message = channel.basicGet(queue, false);
            assertFalse(message.getEnvelope().isRedeliver());
            tags.add(message.getEnvelope().getDeliveryTag());
        }
        channel.basicReject(tags.get(1), true);
        channel.basicNack(tags.get(2), false, true);
        channel.basicNack(tags.get(0), false, true);
        GetResponse first = channel.basicGet(queue, false);
        assertTrue(first.getEnvelope().isRedeliver());
        channel.basicRecover(true);
        assertEquals(List.of("a", "b", "c", "d"), bodies(channel, queue));
        assertNull(channel.basicGet(queue, true));
    }

    @Test
    void aConsumerIsToldThatItsQueueIsGone() throws Exception {
        Channel channel = open();
        String queue = fresh("q");
        channel.queueDeclare(queue, false, false, false, null);
        BlockingQueue<String> cancelled = new LinkedBlockingQueue<>();
        String tag = channel.basicConsume(queue, (ignored, message) -> { }, cancelled::add);
        assertTrue(tag.startsWith("amq.ctag-"));
        open().queueDelete(queue);
        assertEquals(tag, next(cancelled));
    }

    @Test
    void aSlowConsumerDoesNotSlowTheOthers() throws Exception {
        Channel channel = openConfirming();
        String queue = exclusiveQueue(channel);
        Channel slow = connect().createChannel();
        String slowQueue = exclusiveQueue(slow);
        slow.basicQos(1);
        consume(slow, slowQueue, false);
        for (int number = 0; number < 100; number++) {
            channel.basicPublish("", slowQueue, null, new byte[100_000]);
        }
        var inbox = consume(channel, queue, true);
        for (int number = 0; number < 300; number++) {
            publish(channel, queue, "" + number);
            assertEquals("" + number, nextBody(inbox));
        }
    }
}
