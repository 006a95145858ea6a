use prony_engine::{Config, DriverChoice, ListenOptions, run};

#[test]
fn echo() {
    let config = Config {
        driver: DriverChoice::Ring,
        ..Config::default()
    };
    let got = run(&config, |handle| async move {
        let listener = handle
            .listen("127.0.0.1:0".parse().unwrap(), &ListenOptions::default())
            .unwrap();
        let address = listener.local_addr();
        let server = handle.spawn(async move {
            let (stream, _) = listener.accept().await.unwrap();
            loop {
                let bytes = stream.recv().await.unwrap();
                if bytes.is_empty() {
                    return;
                }
                stream.post(bytes.to_vec()).unwrap();
            }
        });
        let stream = handle.connect(address).await.unwrap();
        stream.post("hello").unwrap();
        let mut got = Vec::new();
        while got.len() < 5 {
            got.extend_from_slice(&stream.recv().await.unwrap());
        }
        drop(stream);
        server.await;
        got
    })
    .unwrap();
    assert_eq!(got, b"hello");
}
