//! Exchanges.

use courser_codec::{FieldTable, Method, Table, exchange};

use super::{Channel, ExchangeKind, ExchangeOptions, encode};
use crate::error::Error;
use crate::names::{exchange_name, routing_key, short};

impl Channel {
    /// Makes an exchange, or checks that it is there as described.
    ///
    /// # Errors
    /// 406 when the exchange is there and differs, or the server does not know the kind; 403 for names that begin with
    /// `amq.`.
    pub async fn exchange_declare(
        &self,
        name: &str,
        kind: ExchangeKind,
        options: ExchangeOptions,
    ) -> Result<(), Error> {
        let arguments = encode(&options.arguments);
        let declare = exchange::Declare {
            exchange: exchange_name(name)?,
            kind: short("an exchange's type", kind.name())?,
            durable: options.durable,
            auto_delete: options.auto_delete,
            internal: options.internal,
            arguments: Table::from_entries(&arguments),
            ..Default::default()
        };
        let expects = (exchange::CLASS_ID, exchange::DeclareOk::METHOD_ID);
        self.ask(&Method::ExchangeDeclare(declare), expects).await.map(drop)
    }

    /// Checks that an exchange is there.
    ///
    /// # Errors
    /// 404 when it is not.
    pub async fn exchange_check(&self, name: &str) -> Result<(), Error> {
        let exchange = exchange_name(name)?;
        let declare = exchange::Declare { exchange, passive: true, ..Default::default() };
        let expects = (exchange::CLASS_ID, exchange::DeclareOk::METHOD_ID);
        self.ask(&Method::ExchangeDeclare(declare), expects).await.map(drop)
    }

    /// Deletes an exchange, only if nothing is bound to it when `if_unused` is set; it need not be there.
    ///
    /// # Errors
    /// 406 when it is in use and should not be, 403 for the server's own exchanges.
    pub async fn exchange_delete(&self, name: &str, if_unused: bool) -> Result<(), Error> {
        let exchange = exchange_name(name)?;
        let delete = exchange::Delete { exchange, if_unused, ..Default::default() };
        let expects = (exchange::CLASS_ID, exchange::DeleteOk::METHOD_ID);
        self.ask(&Method::ExchangeDelete(delete), expects).await.map(drop)
    }

    /// Binds an exchange to another one: what `source` routes by this key goes to `destination` too.
    ///
    /// # Errors
    /// 404 when one of them is missing.
    pub async fn exchange_bind(
        &self,
        destination: &str,
        source: &str,
        key: &str,
        arguments: FieldTable,
    ) -> Result<(), Error> {
        let arguments = encode(&arguments);
        let bind = exchange::Bind {
            destination: exchange_name(destination)?,
            source: exchange_name(source)?,
            routing_key: routing_key(key)?,
            arguments: Table::from_entries(&arguments),
            ..Default::default()
        };
        let expects = (exchange::CLASS_ID, exchange::BindOk::METHOD_ID);
        self.ask(&Method::ExchangeBind(bind), expects).await.map(drop)
    }

    /// Takes a binding between exchanges away; it need not be there.
    ///
    /// # Errors
    /// As for every request.
    pub async fn exchange_unbind(
        &self,
        destination: &str,
        source: &str,
        key: &str,
        arguments: FieldTable,
    ) -> Result<(), Error> {
        let arguments = encode(&arguments);
        let unbind = exchange::Unbind {
            destination: exchange_name(destination)?,
            source: exchange_name(source)?,
            routing_key: routing_key(key)?,
            arguments: Table::from_entries(&arguments),
            ..Default::default()
        };
        let expects = (exchange::CLASS_ID, exchange::UnbindOk::METHOD_ID);
        self.ask(&Method::ExchangeUnbind(unbind), expects).await.map(drop)
    }
}
