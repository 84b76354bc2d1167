//! Routing of paths.

use crate::declared::service;
use crate::support::{found, router};

/// Checks the results of a router with a GET route for each template; `expected` is the output of `found`.
#[track_caller]
fn check(templates: &[&str], cases: &[(&str, &str)]) {
    let rules: Vec<String> = templates.iter().map(|template| format!("get: \"{template}\"")).collect();
    let rules: Vec<&str> = rules.iter().map(String::as_str).collect();
    let messages = "message Sub { string z = 1; }
        message In { string x = 1; string y = 2; string a = 3; string b = 4; string id = 5; Sub sub = 6; }";
    // The order of the methods does not matter.
    let backward: Vec<&str> = rules.iter().rev().copied().collect();
    for rules in [rules, backward] {
        let router = router(&service(messages, "In", "In", &rules));
        for (path, expected) in cases {
            assert_eq!(found(&router, "GET", path), *expected, "{path}");
        }
    }
}

#[test]
fn literal_template_matches_complete_path() {
    check(
        &["/p/m/s", "/p/m/o", "/p/n/s", "/q/m/s", "/q/s", "/p/m", "/p"],
        &[
            ("/p/m/s", "/p/m/s"),
            ("/p/m/o", "/p/m/o"),
            ("/p/n/s", "/p/n/s"),
            ("/q/m/s", "/q/m/s"),
            ("/q/s", "/q/s"),
            ("/p/m", "/p/m"),
            ("/p", "/p"),
            ("/p/m/s/t", "404"),
            ("/p/m/x", "404"),
            ("/p/x", "404"),
            ("/q", "404"),
            ("/q/m", "404"),
            ("/x", "404"),
            ("/", "404"),
            ("", "404"),
            ("p", "404"),
            ("p/m", "404"),
            ("*", "404"),
            ("/P", "404"),
            ("/p/", "404"),
            ("//p", "404"),
            ("/p//s", "404"),
            ("/%70", "404"),
        ],
    );
}

#[test]
fn empty_router_matches_nothing() {
    check(&[], &[("/a/b", "404"), ("a/b", "404"), ("/", "404"), ("", "404")]);
}

#[test]
fn literal_wins_over_wildcard() {
    check(
        &["/a/**", "/b/*", "/c/*/d/**", "/c/*/d/e", "/c/f/d/e", "/"],
        &[
            ("/a/b", "/a/**"),
            ("/a/b/c", "/a/**"),
            ("/a", "/a/**"),
            ("/a/", "/a/**"),
            ("/b/c", "/b/*"),
            ("/b/c/d", "404"),
            ("/b", "404"),
            ("/b/", "404"),
            ("b/c", "404"),
            ("/c/u/d/v", "/c/*/d/**"),
            ("/c/v/d/w/x", "/c/*/d/**"),
            ("/c/x/y/d/z", "404"),
            ("/c//v/d/w/x", "404"),
            ("/c//d/w", "404"),
            ("/c/x/d/e", "/c/*/d/e"),
            ("/c/f/d/e", "/c/f/d/e"),
            ("/c/f/d/g", "/c/*/d/**"),
            ("/", "/"),
        ],
    );
    check(
        &["/**"],
        &[("/", "/**"), ("/a", "/**"), ("/a/", "/**"), ("//", "/**"), ("/a:b", "/**"), ("a", "404")],
    );
}

#[test]
fn variables_capture_path_segments() {
    check(
        &[
            "/a/{x}/c/d/e",
            "/{x=a/*}/b/{y=*}/c",
            "/a/{x=b/*}/{y=d/**}",
            "/alpha/{x=*}/beta/{y=**}/gamma",
            "/{x=*}/a",
            "/{x=**}/a/b",
            "/a/b/{x=*}",
            "/a/b/c/{x=**}",
            "/{x=*}/d/e/f/{y=**}",
            "/s/{sub.z}",
        ],
        &[
            ("/a/book/c/d/e", "/a/{x}/c/d/e x=book"),
            ("/a/hello/b/world/c", "/{x=a/*}/b/{y=*}/c x=a/hello y=world"),
            ("/a/b/zoo/d/animal/tiger", "/a/{x=b/*}/{y=d/**} x=b/zoo y=d/animal/tiger"),
            ("/a/b/zoo/d", "/a/{x=b/*}/{y=d/**} x=b/zoo y=d"),
            ("/alpha/dog/beta/eat/bones/gamma", "/alpha/{x=*}/beta/{y=**}/gamma x=dog y=eat/bones"),
            ("/alpha/dog/beta/gamma", "/alpha/{x=*}/beta/{y=**}/gamma x=dog y="),
            ("/foo/a", "/{x=*}/a x=foo"),
            ("/foo/bar/a/b", "/{x=**}/a/b x=foo/bar"),
            ("/a/b", "/{x=**}/a/b x="),
            ("/a/b/foo", "/a/b/{x=*} x=foo"),
            ("/a/b/c/foo/bar/baz", "/a/b/c/{x=**} x=foo/bar/baz"),
            ("/a/b/c/", "/a/b/c/{x=**} x="),
            ("/a/b/c//d", "/a/b/c/{x=**} x=/d"),
            ("/foo/d/e/f/bar/baz", "/{x=*}/d/e/f/{y=**} x=foo y=bar/baz"),
            ("/s/t", "/s/{sub.z} sub.z=t"),
        ],
    );
}

#[test]
fn longest_suffix_after_double_star_wins() {
    check(
        &[
            "/a/{x=b/**}",
            "/a/{x=b/**}/z",
            "/a/{x=b/**}/y/z",
            "/a/{x=b/**}:verb",
            "/a/{x=**}",
            "/c/{x=*}/{y=d/**}/e",
            "/c/{x=*}/{y=d/**}/e:verb",
            "/f/{x=*}/{y=**}/g",
            "/f/{x=*}/{y=**}/g:verb",
            "/a/{x=b/*/y/z/**}/foo",
            "/a/{x=b/*/**/y/z}/foo",
        ],
        &[
            ("/a/b/hello/world/c", "/a/{x=b/**} x=b/hello/world/c"),
            ("/a/b/world/c/z", "/a/{x=b/**}/z x=b/world/c"),
            ("/a/b/world/c/y/z", "/a/{x=b/**}/y/z x=b/world/c"),
            ("/a/b/y/z", "/a/{x=b/**}/y/z x=b"),
            ("/a/b/world/c:verb", "/a/{x=b/**}:verb x=b/world/c"),
            ("/a/hello/b/world/c", "/a/{x=**} x=hello/b/world/c"),
            ("/c/hello/d/esp/world/e", "/c/{x=*}/{y=d/**}/e x=hello y=d/esp/world"),
            ("/c/hola/d/esp/mundo/e:verb", "/c/{x=*}/{y=d/**}/e:verb x=hola y=d/esp/mundo"),
            ("/f/foo/bar/baz/g", "/f/{x=*}/{y=**}/g x=foo y=bar/baz"),
            ("/f/foo/bar/baz/g:verb", "/f/{x=*}/{y=**}/g:verb x=foo y=bar/baz"),
            ("/f/foo/g", "/f/{x=*}/{y=**}/g x=foo y="),
            ("/f/g", "404"),
            ("/a/b/foo/y/z/bar/baz/foo", "/a/{x=b/*/y/z/**}/foo x=b/foo/y/z/bar/baz"),
            ("/a/b/foo/bar/baz/y/z/foo", "/a/{x=b/*/**/y/z}/foo x=b/foo/bar/baz/y/z"),
        ],
    );
}

#[test]
fn custom_verb_wins_over_colon_in_segment() {
    check(
        &["/person", "/person/{id=*}", "/{x=**}:verb"],
        &[
            ("/person:verb", "/{x=**}:verb x=person"),
            ("/person/jason:verb", "/{x=**}:verb x=person/jason"),
            ("/animal:verb", "/{x=**}:verb x=animal"),
            ("/animal/cat:verb", "/{x=**}:verb x=animal/cat"),
            ("/:verb", "/{x=**}:verb x="),
            ("/person", "/person"),
            ("/person/jason", "/person/{id=*} id=jason"),
            ("/animal", "404"),
            ("/person:other", "404"),
            ("/person/jason:other", "/person/{id=*} id=jason:other"),
            ("/person/jason:", "/person/{id=*} id=jason:"),
            ("/person/jason%3Averb", "/person/{id=*} id=jason:verb"),
            ("/animal/cat:other", "404"),
        ],
    );
    check(
        &["/some/const:verb", "/some/*:verb", "/some/*/foo:verb", "/other/**:verb", "/other/**/const:verb"],
        &[
            ("/some/const:verb", "/some/const:verb"),
            ("/some/other:verb", "/some/*:verb"),
            ("/some/other:verb/", "404"),
            ("/some/bar/foo:verb", "/some/*/foo:verb"),
            ("/some/foo1/foo2/foo:verb", "404"),
            ("/some/foo/bar:verb", "404"),
            ("/other/bar/foo:verb", "/other/**:verb"),
            ("/other/bar/foo/const:verb", "/other/**/const:verb"),
        ],
    );
    check(&["/{a=*}/{b=*}:verb"], &[("/some:verb/const:verb", "/{a=*}/{b=*}:verb a=some:verb b=const")]);
    check(&["/foo/{a=*}"], &[("/foo/other:verb", "/foo/{a=*} a=other:verb")]);
    check(&["/foo/*/hello"], &[("/foo/other:verb/hello", "/foo/*/hello")]);
    check(
        &["/{a=**}:verb", "/{a=**}"],
        &[
            ("/some:verb/const:verb", "/{a=**}:verb a=some:verb/const"),
            ("/some:verb/const", "/{a=**} a=some:verb/const"),
            ("/some:verb2/const:verb2", "/{a=**} a=some:verb2/const:verb2"),
        ],
    );
    check(
        &[
            "/a/{y=*}:verb",
            "/a/{y=d/**}:verb",
            "/{x=*}/a:verb",
            "/{x=**}/b:verb",
            "/e/{x=*}/f:verb",
            "/g/{x=**}/h:verb",
        ],
        &[
            ("/a/world:verb", "/a/{y=*}:verb y=world"),
            ("/a/d/animal/tiger:verb", "/a/{y=d/**}:verb y=d/animal/tiger"),
            ("/foo/a:verb", "/{x=*}/a:verb x=foo"),
            ("/foo/bar/baz/b:verb", "/{x=**}/b:verb x=foo/bar/baz"),
            ("/e/foo/f:verb", "/e/{x=*}/f:verb x=foo"),
            ("/g/foo/bar/h:verb", "/g/{x=**}/h:verb x=foo/bar"),
        ],
    );
}

#[test]
fn multi_segment_variable_keeps_encoded_slashes() {
    check(
        &["/a/{x}/c", "/m/{x=p/*/q/*}/c", "/r/{x=**}/c", "/s/{x=*}/{y=**}/c"],
        &[
            ("/a/p%20q%2Fr+/c", "/a/{x}/c x=p q/r+"),
            ("/m/p/foo%20foo/q/bar%2Fbar/c", "/m/{x=p/*/q/*}/c x=p/foo foo/q/bar%2Fbar"),
            ("/r/p/foo%20foo/q/bar%2fbar+/c", "/r/{x=**}/c x=p/foo foo/q/bar%2fbar+"),
            (
                "/s/%21%23%24%26%27%28%29%2A%2B%2C%2F%3A%3B%3D%3F%40%5B%5D/%21%23%2F%3A%3D%3F/c",
                "/s/{x=*}/{y=**}/c x=!#$&'()*+,/:;=?@[] y=!#%2F:=?",
            ),
            ("/a/%zz/c", "/a/{x}/c x=<expected two hexadecimal digits after %>"),
            ("/r/%ff/c", "/r/{x=**}/c x=<percent-decoded text is not UTF-8>"),
        ],
    );
}

#[test]
fn many_slashes_are_matched_in_linear_time() {
    let slashes = "/".repeat(64_000);
    let (yes, no) = (format!("/a/{slashes}/x"), format!("/a/{slashes}/y"));
    check(&["/a/**/x", "/*/*/*/*/b"], &[(&yes, "/a/**/x"), (&no, "404")]);
}

#[test]
fn methods_of_http() {
    let rules = [
        "get: \"/v1/books\" additional_bindings { put: \"/v1/books\" body: \"*\" }",
        "delete: \"/v1/{x}\"",
        "custom: { kind: \"HEAD\" path: \"/v1/{x}\" }",
        "patch: \"/**\" body: \"*\"",
        "custom: { kind: \"*\" path: \"/any\" }",
        "post: \"/any\"",
        "get: \"/v1/books:publish\"",
    ];
    let router = router(&service("message In { string x = 1; }", "In", "In", &rules));
    let check = |method: &str, path: &str, expected: &str| {
        assert_eq!(found(&router, method, path), expected, "{method} {path}");
    };
    check("GET", "/v1/books", "/v1/books");
    check("PUT", "/v1/books", "/v1/books");
    // A route for another method does not hide less literal ones.
    check("DELETE", "/v1/books", "/v1/{x} x=books");
    check("HEAD", "/v1/books", "/v1/{x} x=books");
    check("PATCH", "/v1/books", "/**");
    check("POST", "/v1/books", "405 GET PUT DELETE HEAD PATCH");
    check("POST", "/v1/other", "405 DELETE HEAD PATCH");
    check("GET", "/v1/books:publish", "/v1/books:publish");
    check("DELETE", "/v1/books:publish", "/v1/{x} x=books:publish");
    check("POST", "/any", "/any");
    check("REPORT", "/any", "/any");
    check("get", "/v1/books", "405 GET PUT DELETE HEAD PATCH");
}

#[test]
fn method_without_annotation_is_routed_by_its_path() {
    let router = router("message In { string x = 1; } service S { rpc Plain(In) returns (stream In); }");
    assert_eq!(found(&router, "POST", "/t.S/Plain"), "/t.S/Plain");
    assert_eq!(found(&router, "GET", "/t.S/Plain"), "405 POST");
    assert_eq!(found(&router, "POST", "/t.S/Other"), "404");
    let binding = &router.rules().bindings()[0];
    assert!(!binding.is_annotated() && binding.is_server_streaming() && !binding.is_client_streaming());
}
