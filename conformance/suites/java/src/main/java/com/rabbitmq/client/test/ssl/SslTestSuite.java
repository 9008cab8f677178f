package com.rabbitmq.client.test.ssl;

/** Stands in for the suite of TLS tests, which is left out; an extension of all tests asks whether it runs. */
public final class SslTestSuite {
  private SslTestSuite() {}
}
