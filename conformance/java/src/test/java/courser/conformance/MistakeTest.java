package courser.conformance;

import static org.junit.jupiter.api.Assertions.assertEquals;

import com.rabbitmq.client.AMQP;
import com.rabbitmq.client.Channel;
import com.rabbitmq.client.Connection;
import com.rabbitmq.client.ShutdownSignalException;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Test;

/** Mistakes, with the code and the exact text of the broker's answer. */
class MistakeTest extends Broker {
    private final String name = fresh("name");

    @Test
    void notFound() throws Exception {
        String queue = "NOT_FOUND - no queue '" + name + "' in vhost '/'";
        String exchange = "NOT_FOUND - no exchange '" + name + "' in vhost '/'";
        Connection connection = connect();
        Channel[] channels = new Channel[6];
        for (int number = 0; number < channels.length; number++) {
            channels[number] = connection.createChannel();
        }
        assertClosesChannel(404, queue, () -> channels[0].queueDeclarePassive(name));
        assertClosesChannel(404, queue, () -> channels[1].basicGet(name, true));
        assertClosesChannel(404, queue, () -> channels[2].basicConsume(name, (tag, message) -> { }, tag -> { }));
        assertClosesChannel(404, queue, () -> channels[3].queueBind(name, "amq.direct", "key"));
        assertClosesChannel(404, exchange, () -> channels[4].exchangeDeclarePassive(name));
        assertClosesChannel(404, exchange, () -> channels[5].exchangeBind("amq.fanout", name, "key"));
        exclusiveQueue(connection.createChannel());
    }

    @Test
    void reservedNamesAndTheDefaultExchange() throws Exception {
        Channel first = open();
        assertClosesChannel(403, "ACCESS_REFUSED - queue name 'amq.own' contains reserved prefix 'amq.*'",
                () -> first.queueDeclare("amq.own", false, true, false, null));
        Channel second = open();
        assertClosesChannel(403, "ACCESS_REFUSED - operation not permitted on the default exchange",
                () -> second.exchangeDelete(""));
        Channel third = open();
        assertClosesChannel(403,
                "ACCESS_REFUSED - deletion of system exchange 'amq.direct' in vhost '/' not allowed",
                () -> third.exchangeDelete("amq.direct"));
    }

    @Test
    void resourceLocked() throws Exception {
        open().queueDeclare(name, false, true, false, null);
        Channel other = open();
        assertClosesChannel(405, "RESOURCE_LOCKED - cannot obtain exclusive access to locked queue '" + name
                + "' in vhost '/'. It could be originally declared on another connection or the exclusive property "
                + "value does not match that of the original declaration.", () -> other.queuePurge(name));
    }

    @Test
    void preconditionFailed() throws Exception {
        Channel channel = openConfirming();
        channel.exchangeDeclare(name, "direct", false, true, null);
        channel.queueBind(exclusiveQueue(channel), name, "key");
        assertClosesChannel(406, "PRECONDITION_FAILED - exchange '" + name + "' in vhost '/' in use",
                () -> channel.exchangeDelete(name, true));
        Channel other = open();
        assertClosesChannel(406, "PRECONDITION_FAILED - cannot switch from tx to confirm mode", () -> {
            other.txSelect();
            other.confirmSelect();
        });
    }

    /** What has no answer: the reason comes to the shutdown listener. */
    private static void assertHearsOf(int code, String text, Channel channel, Action mistake) throws Exception {
        CompletableFuture<ShutdownSignalException> heard = new CompletableFuture<>();
        channel.addShutdownListener(heard::complete);
        mistake.make(channel);
        assertReason(code, text, heard.get(PATIENCE_MS, TimeUnit.MILLISECONDS));
    }

    private interface Action {
        void make(Channel channel) throws Exception;
    }

    @Test
    void mistakesWithoutAnAnswerCloseTheChannel() throws Exception {
        assertHearsOf(406, "PRECONDITION_FAILED - unknown delivery tag 99", open(),
                channel -> channel.basicAck(99, false));
        assertHearsOf(404, "NOT_FOUND - no exchange '" + name + "' in vhost '/'", open(),
                channel -> channel.basicPublish(name, "key", null, new byte[0]));
        var other = new AMQP.BasicProperties.Builder().userId("stranger").build();
        assertHearsOf(406,
                "PRECONDITION_FAILED - user_id property set to 'stranger' but authenticated user was 'guest'", open(),
                channel -> channel.basicPublish("", "q", other, new byte[0]));
        assertHearsOf(403, "ACCESS_REFUSED - cannot publish to internal exchange '" + name + "' in vhost '/'", open(),
                channel -> {
                    channel.exchangeDeclare(name, "fanout", false, true, true, null);
                    channel.queueBind(exclusiveQueue(channel), name, "");
                    channel.basicPublish(name, "", null, new byte[0]);
                });
    }

    @Test
    void mistakesThatCloseTheConnection() throws Exception {
        assertHearsOf(540, "NOT_IMPLEMENTED - immediate=true", open(),
                channel -> channel.basicPublish("", "q", false, true, null, new byte[0]));
        assertHearsOf(530, "NOT_ALLOWED - attempt to reuse consumer tag 'twice'", open(), channel -> {
            String queue = exclusiveQueue(channel);
            channel.basicConsume(queue, true, "twice", (tag, message) -> { }, tag -> { });
            channel.asyncRpc(new AMQP.Basic.Consume.Builder().queue(queue).consumerTag("twice").build());
        });
    }

    @Test
    void whatLooksLikeAMistakeAndIsNone() throws Exception {
        Channel channel = open();
        assertEquals(0, channel.queueDelete(name).getMessageCount());
        channel.exchangeDelete(name);
        channel.queueUnbind(exclusiveQueue(channel), "amq.direct", "never bound");
        channel.basicPublish("", name, null, bytes("dropped"));
        exclusiveQueue(channel);
    }
}
