package grpcwire

import "errors"

// headerField is one header. Names are lower case in HTTP/2.
type headerField struct{ name, value string }

// size is what RFC 7541 §4.1 counts a field as.
func (f headerField) size() int { return len(f.name) + len(f.value) + 32 }

const (
	// maxDynamicTable is SETTINGS_HEADER_TABLE_SIZE's default: the client announces none.
	maxDynamicTable = 4096
	// maxHeaderBlock bounds one block of headers as it is sent, maxHeaderList as it is read.
	maxHeaderBlock = 64 << 10
	maxHeaderList  = 64 << 10

	maxHuffmanBits = 30
	huffmanEnd     = 256 // EOS, which no text may contain
)

var (
	errHPACK       = errors.New("header block is malformed")
	errHeaderLimit = errors.New("headers exceed 65536 bytes")
)

// hpackDecoder reads blocks of headers (RFC 7541).
type hpackDecoder struct {
	dynamic []headerField // the newest is last
	used    int           // sizes of dynamic
	limit   int           // of used, as the peer chose it
}

func newHPACKDecoder() hpackDecoder { return hpackDecoder{limit: maxDynamicTable} }

// decode calls emit with each field of a whole block.
func (d *hpackDecoder) decode(block []byte, emit func(headerField)) error {
	total := 0
	first := true
	r := hpackReader{rest: block}
	for len(r.rest) > 0 && r.err == nil {
		kind := r.rest[0]
		var f headerField
		keep := false
		switch {
		case kind&0x80 != 0: // indexed
			f = d.at(&r, r.integer(7))
		case kind&0xc0 == 0x40: // literal that enters the table
			f, keep = d.literal(&r, 6), true
		case kind&0xe0 == 0x20: // new size of the table
			size := r.integer(5)
			if size > maxDynamicTable || !first && d.used > 0 {
				r.fail() // it belongs before the first field
			}
			if r.err == nil {
				d.limit = int(size)
				d.evict()
			}
			continue
		default: // literal that does not: 0000 or, never indexed, 0001
			f = d.literal(&r, 4)
		}
		if r.err != nil {
			break
		}
		first = false
		if keep {
			d.add(f)
		}
		if total += f.size(); total > maxHeaderList {
			return errHeaderLimit
		}
		emit(f)
	}
	return r.err
}

// literal reads a field whose name is an index or a text.
func (d *hpackDecoder) literal(r *hpackReader, bits uint) headerField {
	var f headerField
	if i := r.integer(bits); i != 0 {
		f.name = d.at(r, i).name
	} else {
		f.name = r.text()
	}
	f.value = r.text()
	return f
}

// at is the field of an index: the static table, then the newest of the dynamic one.
func (d *hpackDecoder) at(r *hpackReader, i uint64) headerField {
	if r.err != nil {
		return headerField{}
	}
	if i == 0 || i > uint64(len(staticTable)+len(d.dynamic)) {
		r.fail()
		return headerField{}
	}
	if i <= uint64(len(staticTable)) {
		return staticTable[i-1]
	}
	return d.dynamic[len(d.dynamic)-(int(i)-len(staticTable))]
}

func (d *hpackDecoder) add(f headerField) {
	d.dynamic = append(d.dynamic, f)
	d.used += f.size()
	d.evict()
}

// evict drops the oldest fields until the rest fits.
func (d *hpackDecoder) evict() {
	n := 0
	for d.used > d.limit {
		d.used -= d.dynamic[n].size()
		n++
	}
	d.dynamic = append(d.dynamic[:0], d.dynamic[n:]...)
}

// hpackReader reads the primitives of a block. The first error stops it.
type hpackReader struct {
	rest []byte
	err  error
}

func (r *hpackReader) fail() {
	if r.err == nil {
		r.err = errHPACK
	}
	r.rest = nil
}

// integer reads an integer whose first part has that many bits of the first byte (RFC
// 7541 §5.1).
func (r *hpackReader) integer(bits uint) uint64 {
	if len(r.rest) == 0 {
		r.fail()
		return 0
	}
	most := uint64(1)<<bits - 1
	v := uint64(r.rest[0]) & most
	r.rest = r.rest[1:]
	if v < most {
		return v
	}
	for shift := uint(0); len(r.rest) > 0 && shift < 63; shift += 7 {
		b := r.rest[0]
		r.rest = r.rest[1:]
		v += uint64(b&0x7f) << shift
		if b&0x80 == 0 {
			return v
		}
	}
	r.fail()
	return 0
}

func (r *hpackReader) text() string {
	if len(r.rest) == 0 {
		r.fail()
		return ""
	}
	coded := r.rest[0]&0x80 != 0
	n := r.integer(7)
	if r.err != nil || n > uint64(len(r.rest)) {
		r.fail()
		return ""
	}
	raw := r.rest[:n]
	r.rest = r.rest[n:]
	if !coded {
		return string(raw)
	}
	out, ok := appendHuffman(make([]byte, 0, 2*len(raw)), raw)
	if !ok {
		r.fail()
		return ""
	}
	return string(out)
}

// appendHuffman decodes a text. false: it is not one that an encoder makes, whose
// padding is the beginning of the end symbol and shorter than a byte.
func appendHuffman(out, in []byte) ([]byte, bool) {
	var code, first, index uint32 // first: the lowest code of the length; index: of its symbol
	bits := 0
	ones := true // all bits of code are
	for _, b := range in {
		for i := 7; i >= 0; i-- {
			bit := uint32(b>>i) & 1
			code = code<<1 | bit
			ones = ones && bit == 1
			bits++
			count := uint32(huffmanCounts[bits])
			if code-first < count {
				symbol := huffmanSymbols[index+code-first]
				if symbol == huffmanEnd {
					return nil, false
				}
				out = append(out, byte(symbol))
				code, first, index, bits, ones = 0, 0, 0, 0, true
				continue
			}
			index += count
			first = (first + count) << 1
		}
	}
	return out, ones && bits < 8
}

// appendHeader appends a field as a literal that enters no table, not Huffman coded:
// the client sends one block only, so there is nothing to remember.
func appendHeader(b []byte, name, value string) []byte {
	b = append(b, 0)
	b = appendHPACKText(b, name)
	return appendHPACKText(b, value)
}

func appendHPACKText(b []byte, s string) []byte {
	const most = 1<<7 - 1
	n := len(s)
	if n < most {
		return append(append(b, byte(n)), s...)
	}
	b = append(b, most)
	for n -= most; n >= 0x80; n >>= 7 {
		b = append(b, byte(n)|0x80)
	}
	return append(append(b, byte(n)), s...)
}
