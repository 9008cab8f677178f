package courser.conformance;

import org.junit.jupiter.api.Test;

/** Checks nothing of the broker: it lets Maven fetch, ahead of the tests, all that running a test needs. */
class SetupTest {
    @Test
    void aTestCanRun() throws Exception {
        Broker.factory();
    }
}
