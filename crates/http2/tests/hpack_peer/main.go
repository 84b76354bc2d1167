// The other side of tests/hpack_peer.rs: golang.org/x/net's HPACK over standard input and output.
//
// A message is a length in four octets, then operations without separators. The response is one message with the
// results of its operations, without separators. All integers are big-endian.
//
//	'd' size              sets the maximum table size of the decoder's peer   -> nothing
//	'e' size              sets the encoder's table size                       -> nothing
//	'D' block             decodes                                             -> list
//	'E' list              encodes                                             -> block
//
// A size is four octets. A block is a string: its length in four octets, then its octets. A list is its length in one
// octet, then for each field name, value and one octet that is 1 if the field must never be indexed.
package main

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"io"
	"log"
	"os"

	"golang.org/x/net/http2/hpack"
)

func main() {
	in, out := bufio.NewReader(os.Stdin), bufio.NewWriter(os.Stdout)
	decoder := hpack.NewDecoder(4096, nil)
	var block bytes.Buffer
	encoder := hpack.NewEncoder(&block)
	encoder.SetMaxDynamicTableSizeLimit(1 << 20)

	for {
		var length [4]byte
		if _, err := io.ReadFull(in, length[:]); err == io.EOF {
			return
		} else if err != nil {
			log.Fatal(err)
		}
		request := make([]byte, binary.BigEndian.Uint32(length[:]))
		if _, err := io.ReadFull(in, request); err != nil {
			log.Fatal(err)
		}
		operations, response := reader(request), []byte{}
		for len(operations) > 0 {
			switch operation := operations.octet(); operation {
			case 'd':
				decoder.SetAllowedMaxDynamicTableSize(operations.integer())
			case 'e':
				encoder.SetMaxDynamicTableSize(operations.integer())
			case 'D':
				received := operations.string()
				fields, err := decoder.DecodeFull(received)
				if err != nil {
					log.Fatalf("decoding %x: %v", received, err)
				}
				response = appendList(response, fields)
			case 'E':
				block.Reset()
				for _, field := range operations.list() {
					if err := encoder.WriteField(field); err != nil {
						log.Fatal(err)
					}
				}
				response = appendString(response, block.Bytes())
			default:
				log.Fatalf("no such operation: %q", operation)
			}
		}
		out.Write(binary.BigEndian.AppendUint32(nil, uint32(len(response))))
		out.Write(response)
		if err := out.Flush(); err != nil {
			log.Fatal(err)
		}
	}
}

// reader reads values from the front of a message.
type reader []byte

func (r *reader) octet() byte {
	first := (*r)[0]
	*r = (*r)[1:]
	return first
}

func (r *reader) integer() uint32 {
	value := binary.BigEndian.Uint32(*r)
	*r = (*r)[4:]
	return value
}

func (r *reader) string() []byte {
	length := r.integer()
	value := (*r)[:length]
	*r = (*r)[length:]
	return value
}

func (r *reader) list() []hpack.HeaderField {
	fields := make([]hpack.HeaderField, r.octet())
	for i := range fields {
		fields[i] = hpack.HeaderField{Name: string(r.string()), Value: string(r.string())}
		fields[i].Sensitive = r.octet() == 1
	}
	return fields
}

func appendString[S string | []byte](response []byte, value S) []byte {
	return append(binary.BigEndian.AppendUint32(response, uint32(len(value))), value...)
}

func appendList(response []byte, fields []hpack.HeaderField) []byte {
	response = append(response, byte(len(fields)))
	for _, field := range fields {
		response = appendString(appendString(response, field.Name), field.Value)
		if field.Sensitive {
			response = append(response, 1)
		} else {
			response = append(response, 0)
		}
	}
	return response
}
