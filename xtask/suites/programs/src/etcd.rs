//! `etcd-client`, with an etcd.

use etcd_client::{
    Client, Compare, CompareOp, ConnectOptions, DeleteOptions, EventType, GetOptions, PutOptions, Txn, TxnOp,
};

use crate::outcome::Outcome;

const MEBIBYTE: usize = 1 << 20;
/// etcd's default request limit.
const REQUEST_MAX: usize = 3 * MEBIBYTE / 2;

pub async fn drive(address: &str) -> Outcome {
    let mut client = client(address).await?;
    keys(&mut client).await?;
    transaction(&mut client).await?;
    watch(&mut client).await?;
    lease(&mut client).await?;
    lock(&mut client).await?;
    election(&mut client).await?;
    snapshot(&mut client).await?;
    authentication(address, &mut client).await
}

pub async fn client(address: &str) -> Outcome<Client> {
    let options = ConnectOptions::new().with_require_leader(true);
    Ok(Client::connect([address], Some(options)).await?)
}

/// A call for the rates.
pub async fn get(mut client: Client) -> Outcome {
    client.get("tree/oak", None).await?;
    Ok(())
}

async fn keys(client: &mut Client) -> Outcome {
    client.put("tree/oak", "100", None).await?;
    client.put("tree/elm", "80", None).await?;
    let options = PutOptions::new().with_prev_key();
    let put = client.put("tree/oak", "101", Some(options)).await?;
    assert_eq!(put.prev_key().map(|kv| kv.value()), Some(&b"100"[..]));
    let got = client.get("tree/", Some(GetOptions::new().with_prefix())).await?;
    let pairs: Vec<_> = got.kvs().iter().map(|kv| (kv.key(), kv.value())).collect();
    assert_eq!(pairs, [(&b"tree/elm"[..], &b"80"[..]), (&b"tree/oak"[..], &b"101"[..])]);

    let large = vec![7; MEBIBYTE];
    client.put("large", large.clone(), None).await?;
    assert_eq!(client.get("large", None).await?.kvs()[0].value(), large);
    let too_large = client.put("large", vec![7; REQUEST_MAX], None).await.unwrap_err().to_string();
    assert!(too_large.contains("request is too large"), "{too_large}");

    let mut calls = tokio::task::JoinSet::new();
    for number in 0..200 {
        let mut client = client.clone();
        calls.spawn(async move { client.put(format!("many/{number}"), number.to_string(), None).await });
    }
    while let Some(put) = calls.join_next().await {
        put??;
    }
    let deleted = client.delete("many/", Some(DeleteOptions::new().with_prefix())).await?;
    assert_eq!(deleted.deleted(), 200);
    Ok(())
}

async fn transaction(client: &mut Client) -> Outcome {
    let oak = |number: &str| Compare::value("tree/oak", CompareOp::Equal, number);
    let set = |number: &str| TxnOp::put("tree/oak", number, None);
    let when = |number: &str| Txn::new().when([oak(number)]).and_then([set("102")]).or_else([set("0")]);
    assert!(client.txn(when("101")).await?.succeeded());
    assert!(!client.txn(when("101")).await?.succeeded());
    assert_eq!(client.get("tree/oak", None).await?.kvs()[0].value(), b"0");
    Ok(())
}

async fn watch(client: &mut Client) -> Outcome {
    let mut watcher = client.watch("watched", None).await?;
    let created = watcher.message().await?.ok_or("the stream of a watcher ended")?;
    assert!(created.created());
    for number in 0..100 {
        client.put("watched", number.to_string(), None).await?;
    }
    client.delete("watched", None).await?;
    let mut values = Vec::new();
    'watching: loop {
        let message = watcher.message().await?.ok_or("the stream of a watcher ended")?;
        for event in message.events() {
            match (event.event_type(), event.kv()) {
                (EventType::Put, Some(kv)) => values.push(kv.value_str()?.to_owned()),
                _ => break 'watching,
            }
        }
    }
    assert_eq!(values, (0..100).map(|number: i32| number.to_string()).collect::<Vec<_>>());
    watcher.cancel(created.watch_id()).await?;
    let cancelled = watcher.message().await?.ok_or("the stream of a watcher ended")?;
    assert!(cancelled.canceled());
    Ok(())
}

async fn lease(client: &mut Client) -> Outcome {
    let lease = client.lease_grant(60, None).await?;
    client.put("leased", "1", Some(PutOptions::new().with_lease(lease.id()))).await?;
    let (mut keeper, mut stream) = client.lease_keep_alive(lease.id()).await?;
    for _ in 0..3 {
        keeper.keep_alive().await?;
        let keep_alive = stream.message().await?.ok_or("the stream of a lease ended")?;
        assert_eq!((keep_alive.id(), keep_alive.ttl()), (lease.id(), 60));
    }
    client.lease_revoke(lease.id()).await?;
    assert_eq!(client.get("leased", None).await?.count(), 0);
    Ok(())
}

async fn lock(client: &mut Client) -> Outcome {
    let door_lock = client.lock("door", None).await?;
    let mut other = client.clone();
    let waiting = tokio::spawn(async move { other.lock("door", None).await });
    client.unlock(door_lock.key()).await?;
    client.unlock(waiting.await??.key()).await?;
    Ok(())
}

async fn election(client: &mut Client) -> Outcome {
    let lease = client.lease_grant(60, None).await?.id();
    client.campaign("chair", "we", lease).await?;
    let mut observed = client.observe("chair").await?;
    let first = observed.message().await?.ok_or("the observer received nothing")?;
    assert_eq!(first.kv().map(|kv| kv.value()), Some(&b"we"[..]));
    client.lease_revoke(lease).await?;
    let error = client.leader("chair").await.unwrap_err().to_string();
    assert!(error.contains("no leader"), "{error}");
    Ok(())
}

async fn snapshot(client: &mut Client) -> Outcome {
    let mut snapshot = client.snapshot().await?;
    let mut bytes = 0;
    while let Some(piece) = snapshot.message().await? {
        bytes += piece.blob().len();
        if piece.remaining_bytes() == 0 {
            break;
        }
    }
    assert!(bytes > MEBIBYTE, "{bytes} bytes");
    Ok(())
}

/// The client requests a token and sends it with each call.
async fn authentication(address: &str, client: &mut Client) -> Outcome {
    client.user_add("root", "secret", None).await?;
    client.role_add("root").await?;
    client.user_grant_role("root", "root").await?;
    client.auth_enable().await?;
    let error = client.get("large", None).await.unwrap_err().to_string();
    assert!(error.contains("user name is empty"), "{error}");
    let options = ConnectOptions::new().with_user("root", "wrong");
    assert!(Client::connect([address], Some(options)).await.is_err());
    let options = ConnectOptions::new().with_user("root", "secret");
    let mut known = Client::connect([address], Some(options)).await?;
    assert_eq!(known.get("large", None).await?.count(), 1);
    known.auth_disable().await?;
    Ok(())
}
