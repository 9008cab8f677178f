package courser.conformance;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.rabbitmq.client.AuthenticationFailureException;
import com.rabbitmq.client.Channel;
import com.rabbitmq.client.Connection;
import com.rabbitmq.client.ConnectionFactory;
import com.rabbitmq.client.ShutdownSignalException;
import java.io.IOException;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Test;

/** Logging in, limits, heartbeats, channels. */
class ConnectionTest extends Broker {
    @Test
    void theBrokerSaysWhatItIs() throws Exception {
        Map<String, Object> properties = connect().getServerProperties();
        for (String name : List.of("product", "version", "platform", "copyright", "information", "cluster_name")) {
            assertTrue(properties.get(name).toString().length() > 0, name);
        }
        Map<?, ?> capabilities = (Map<?, ?>) properties.get("capabilities");
        for (String name : List.of("publisher_confirms", "exchange_exchange_bindings", "basic.nack",
                "consumer_cancel_notify", "connection.blocked", "consumer_priorities",
                "authentication_failure_close", "per_consumer_qos", "direct_reply_to")) {
            assertEquals(true, capabilities.get(name), name);
        }
    }

    @Test
    void theLimitsAreNegotiated() throws Exception {
        Connection offered = connect();
        assertEquals(2047, offered.getChannelMax());
        assertEquals(131072, offered.getFrameMax());
        assertEquals(60, offered.getHeartbeat());
        ConnectionFactory modest = factory();
        modest.setRequestedChannelMax(7);
        modest.setRequestedFrameMax(4096);
        modest.setRequestedHeartbeat(5);
        Connection connection = connect(modest);
        assertEquals(7, connection.getChannelMax());
        assertEquals(4096, connection.getFrameMax());
        assertEquals(5, connection.getHeartbeat());
        for (int number = 0; number < 7; number++) {
            exclusiveQueue(connection.createChannel());
        }
        assertNull(connection.createChannel());
    }

    @Test
    void aWrongPasswordIsRefused() throws Exception {
        ConnectionFactory factory = factory();
        factory.setPassword("wrong");
        var error = assertThrows(AuthenticationFailureException.class, factory::newConnection);
        String text = "ACCESS_REFUSED - Login was refused using authentication mechanism PLAIN. "
                + "For details see the broker logfile.";
        assertEquals(text, error.getMessage());
    }

    @Test
    void anUnknownVhostIsRefused() throws Exception {
        ConnectionFactory factory = factory();
        factory.setVirtualHost("nowhere");
        var error = assertThrows(IOException.class, factory::newConnection);
        assertReason(530, "NOT_ALLOWED - vhost nowhere not found", (ShutdownSignalException) error.getCause());
    }

    @Test
    void anIdleConnectionLivesByHeartbeats() throws Exception {
        ConnectionFactory factory = factory();
        factory.setRequestedHeartbeat(1);
        Channel channel = connect(factory).createChannel();
        Thread.sleep(4000);
        exclusiveQueue(channel);
    }

    @Test
    void allChannelsOfAConnection() throws Exception {
        Connection connection = connect();
        List<Channel> channels = new ArrayList<>();
        for (int number = 1; number <= 2047; number++) {
            channels.add(connection.createChannel());
        }
        assertEquals(2047, channels.get(2046).getChannelNumber());
        exclusiveQueue(channels.get(2046));
        assertNull(connection.createChannel());
    }

    @Test
    void aChannelNumberIsFreeRightAfterClose() throws Exception {
        Connection connection = connect();
        for (int round = 0; round < 300; round++) {
            Channel channel = connection.createChannel(3);
            channel.basicQos(1);
            channel.close();
        }
    }

    @Test
    void anExclusiveQueueIsFreeOnceItsConnectionIsClosed() throws Exception {
        String name = fresh("q");
        for (int round = 0; round < 20; round++) {
            Connection connection = connect();
            connection.createChannel().queueDeclare(name, false, true, false, null);
            connection.close();
        }
    }

    @Test
    void manyConnectionsAtOnce() throws Exception {
        for (int number = 0; number < 100; number++) {
            exclusiveQueue(open());
        }
    }
}
