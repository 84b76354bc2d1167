# Shared by the Go peers that generate code: builds the program, with PLUGINS of protoc as pinned by the module's `tool`
# lines.

$(BUILD)/peer: $(SOURCES) $(PROTO)/$(ECHO) Makefile ../grpc-gateway/generated.mk
	rm -rf $(BUILD)/source
	mkdir -p $(BUILD)/source
	cp $(SOURCES) $(BUILD)/source
	cd $(BUILD)/source && GOBIN=$(abspath $(BUILD))/bin go install tool
	PATH=$(abspath $(BUILD))/bin:$$PATH protoc -I$(PROTO) $(ECHO) $(foreach plugin,$(PLUGINS),\
	  --$(plugin)_out=$(BUILD)/source --$(plugin)_opt=module=thalweg/peer,M$(ECHO)=thalweg/peer/labv1)
	cd $(BUILD)/source && go build -o $(abspath $@) .
