//! Nothing by itself: its tests ask a broker's HTTP API with the crate `rabbitmq_http_client`, which
//! decodes answers strictly.
