//! Services and methods.

use super::parser::{Parsed, Parser};
use crate::sources::ids::ServiceId;
use crate::sources::locations::LocationId;
use crate::sources::pool::{Method, MethodType, Service};

/// Field numbers of `ServiceDescriptorProto`.
mod service_fields {
    pub(super) const METHOD: i32 = 2;
    pub(super) const OPTIONS: i32 = 3;
}

/// Field numbers of `MethodDescriptorProto`.
mod method_fields {
    pub(super) const INPUT: i32 = 2;
    pub(super) const OUTPUT: i32 = 3;
    pub(super) const OPTIONS: i32 = 4;
    pub(super) const CLIENT_STREAMING: i32 = 5;
    pub(super) const SERVER_STREAMING: i32 = 6;
}

impl Parser<'_, '_> {
    pub(super) fn service(&mut self, location: LocationId) -> Parsed {
        let name_at = self.lexer.current.position();
        let declared = self.pool.add_service(Service {
            name: "".into(),
            name_at,
            node: None,
            methods: Vec::new(),
            options: None,
        });
        self.pool[self.file].services.push(declared);
        self.expect(b"service")?;
        let (name, name_at) = self.name("a service name")?;
        (self.pool[declared].name, self.pool[declared].name_at) = (name, name_at);
        self.end_declaration(b"{", Some(location))?;
        self.block("service", |parser| parser.service_statement(declared))
    }

    fn service_statement(&mut self, declared: ServiceId) -> Parsed {
        if self.try_end_declaration(b";", None) {
            return Ok(());
        }
        if self.at(b"option") {
            let mut options = self.pool[declared].options.take();
            let parsed =
                self.located(&[service_fields::OPTIONS], |parser, _| parser.option_statement(&mut options));
            self.pool[declared].options = options;
            return parsed;
        }
        let index = self.pool[declared].methods.len() as i32;
        self.located(&[service_fields::METHOD, index], |parser, location| {
            let mut method = Method::default();
            let parsed = parser.method(&mut method, location);
            parser.pool[declared].methods.push(method);
            parsed
        })
    }

    fn method(&mut self, declared: &mut Method, location: LocationId) -> Parsed {
        if !self.eat(b"rpc") {
            return self.fail(format!("expected \"rpc\", \"option\" or \"}}\", found {}", self.found()));
        }
        (declared.name, declared.name_at) = self.name("a method name")?;
        declared.input = self.method_type(method_fields::INPUT, method_fields::CLIENT_STREAMING)?;
        self.expect(b"returns")?;
        declared.output = self.method_type(method_fields::OUTPUT, method_fields::SERVER_STREAMING)?;
        if !self.at(b"{") {
            return self.end_declaration(b";", Some(location));
        }
        self.end_declaration(b"{", Some(location))?;
        let options = &mut declared.options;
        // Braces count as options even if they are empty.
        options.get_or_insert_default();
        self.block("method's options", |parser| {
            if parser.try_end_declaration(b";", None) {
                return Ok(());
            }
            parser.located(&[method_fields::OPTIONS], |parser, _| parser.option_statement(options))
        })
    }

    fn method_type(&mut self, number: i32, streaming: i32) -> Parsed<MethodType> {
        self.expect(b"(")?;
        let is_stream = self.at(b"stream");
        if is_stream {
            self.located(&[streaming], |parser, _| parser.expect(b"stream"))?;
        }
        let at = self.lexer.current.position();
        let name = self.located(&[number], |parser, _| parser.type_name())?;
        self.expect(b")")?;
        Ok(MethodType { name, at, is_stream, message: None })
    }
}
