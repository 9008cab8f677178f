//! Queues.

use courser_codec::{FieldTable, Method, Table, queue};

use super::{Channel, DeleteQueueOptions, QueueInfo, QueueOptions, encode, text};
use crate::error::Error;
use crate::names::{exchange_name, queue_name, routing_key};
use crate::route::Reply;

impl Channel {
    /// Makes a queue, or checks that it is there as described. With an empty name the server makes one up.
    ///
    /// # Errors
    /// 406 when the queue is there and differs, 403 for names that begin with `amq.`, 405 for another connection's
    /// exclusive queue.
    pub async fn queue_declare(
        &self,
        name: &str,
        options: QueueOptions,
    ) -> Result<QueueInfo, Error> {
        let arguments = encode(&options.arguments);
        self.declare(queue::Declare {
            queue: queue_name(name)?,
            durable: options.durable,
            exclusive: options.exclusive,
            auto_delete: options.auto_delete,
            arguments: Table::from_entries(&arguments),
            ..Default::default()
        })
        .await
    }

    /// Asks about a queue that has to be there.
    ///
    /// # Errors
    /// 404 when it is not.
    pub async fn queue_info(&self, name: &str) -> Result<QueueInfo, Error> {
        let queue = queue_name(name)?;
        self.declare(queue::Declare { queue, passive: true, ..Default::default() }).await
    }

    async fn declare(&self, declare: queue::Declare<'_>) -> Result<QueueInfo, Error> {
        let expects = (queue::CLASS_ID, queue::DeclareOk::METHOD_ID);
        match self.ask(&Method::QueueDeclare(declare), expects).await? {
            Reply::Queue { name, message_count, consumer_count } => {
                Ok(QueueInfo { name: text(&name), message_count, consumer_count })
            }
            _ => Err(self.gone()),
        }
    }

    /// Binds a queue to an exchange. An empty queue name is the one that was declared last on this channel.
    ///
    /// # Errors
    /// 404 when one of them is missing.
    pub async fn queue_bind(
        &self,
        queue: &str,
        exchange: &str,
        key: &str,
        arguments: FieldTable,
    ) -> Result<(), Error> {
        let arguments = encode(&arguments);
        let bind = queue::Bind {
            queue: queue_name(queue)?,
            exchange: exchange_name(exchange)?,
            routing_key: routing_key(key)?,
            arguments: Table::from_entries(&arguments),
            ..Default::default()
        };
        let expects = (queue::CLASS_ID, queue::BindOk::METHOD_ID);
        self.ask(&Method::QueueBind(bind), expects).await.map(drop)
    }

    /// Takes a binding away; it need not be there.
    ///
    /// # Errors
    /// As for every request.
    pub async fn queue_unbind(
        &self,
        queue: &str,
        exchange: &str,
        key: &str,
        arguments: FieldTable,
    ) -> Result<(), Error> {
        let arguments = encode(&arguments);
        let unbind = queue::Unbind {
            queue: queue_name(queue)?,
            exchange: exchange_name(exchange)?,
            routing_key: routing_key(key)?,
            arguments: Table::from_entries(&arguments),
        };
        let expects = (queue::CLASS_ID, queue::UnbindOk::METHOD_ID);
        self.ask(&Method::QueueUnbind(unbind), expects).await.map(drop)
    }

    /// Throws the messages of a queue away that are ready for delivery. Gives their number.
    ///
    /// # Errors
    /// 404 when the queue is missing.
    pub async fn queue_purge(&self, name: &str) -> Result<u32, Error> {
        let purge = queue::Purge { queue: queue_name(name)?, ..Default::default() };
        let expects = (queue::CLASS_ID, queue::PurgeOk::METHOD_ID);
        self.count(&Method::QueuePurge(purge), expects).await
    }

    /// Deletes a queue; it need not be there. Gives the number of messages that went with it.
    ///
    /// # Errors
    /// 406 when the options forbid it.
    pub async fn queue_delete(
        &self,
        name: &str,
        options: DeleteQueueOptions,
    ) -> Result<u32, Error> {
        let delete = queue::Delete {
            queue: queue_name(name)?,
            if_unused: options.if_unused,
            if_empty: options.if_empty,
            ..Default::default()
        };
        let expects = (queue::CLASS_ID, queue::DeleteOk::METHOD_ID);
        self.count(&Method::QueueDelete(delete), expects).await
    }

    async fn count(&self, method: &Method<'_>, expects: (u16, u16)) -> Result<u32, Error> {
        match self.ask(method, expects).await? {
            Reply::Count(count) => Ok(count),
            _ => Err(self.gone()),
        }
    }
}
