package grpcwire

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/net/http2/hpack"
)

// TestHuffman_EveryByte: the code is the one of the RFC, as another implementation has it.
func TestHuffman_EveryByte(t *testing.T) {
	t.Parallel()
	for a := range 256 {
		for _, text := range []string{string([]byte{byte(a)}), string([]byte{byte(a), 'x', byte(255 - a)})} {
			coded := hpack.AppendHuffmanString(nil, text)
			got, ok := appendHuffman(nil, coded)
			if !ok || string(got) != text {
				t.Errorf("%q: %q %v", text, got, ok)
			}
		}
	}
	for name, in := range map[string][]byte{
		"a whole byte of padding": {0x07, 0xff}, "padding of zeros": {0x00}, "end of text": {0xff, 0xff, 0xff, 0xff},
	} {
		if got, ok := appendHuffman(nil, in); ok {
			t.Errorf("%s: %q", name, got)
		}
	}
}

// TestHPACK_Blocks: a peer's encoder is understood over many blocks, while its table
// fills, changes its size and loses fields.
func TestHPACK_Blocks(t *testing.T) {
	t.Parallel()
	var block bytes.Buffer
	enc := hpack.NewEncoder(&block)
	dec := newHPACKDecoder()
	for round := range 200 {
		block.Reset()
		if round%17 == 0 {
			enc.SetMaxDynamicTableSize(uint32(round * 20 % 4097))
		}
		want := []headerField{
			{":status", "200"}, {"content-type", "application/grpc"}, {"x", strings.Repeat("v", round)}, {"grpc-status", "0"},
			{"n" + strings.Repeat("n", round%7), "ü\x00"},
		}
		for i, f := range want {
			if err := enc.WriteField(hpack.HeaderField{Name: f.name, Value: f.value, Sensitive: i == 3 && round%2 == 0}); err != nil {
				t.Fatal(err)
			}
		}
		var got []headerField
		if err := dec.decode(block.Bytes(), func(f headerField) { got = append(got, f) }); err != nil {
			t.Fatalf("round %d: %v", round, err)
		}
		if d := cmp.Diff(want, got, cmp.AllowUnexported(headerField{})); d != "" {
			t.Fatalf("round %d:\n%s", round, d)
		}
	}
}

// TestAppendHeader: what is written is read by others, of any length.
func TestAppendHeader(t *testing.T) {
	t.Parallel()
	for _, n := range []int{0, 1, 126, 127, 128, 254, 255, 300, 20_000} {
		value := strings.Repeat("v", n)
		fields, err := hpack.NewDecoder(4096, nil).DecodeFull(appendHeader(nil, "name", value))
		if err != nil || len(fields) != 1 || fields[0].Name != "name" || fields[0].Value != value {
			t.Errorf("%d bytes: %v", n, err)
		}
	}
}

// FuzzHPACK: two blocks mean what another implementation reads in them, or neither reads
// them; and none costs more memory than it may.
func FuzzHPACK(f *testing.F) {
	for _, seed := range []string{
		"\x82\x86\x84\x41\x0fwww.example.com", "\x82\x86\x84\xbe\x58\x08no-cache", "\x88\x61\x96\xdf\x3d\xbf\x4a\x04\xa6\x43",
		"\x3f\xe1\x1f\x40\x01a\x01b\xbe", "\x20\x40\x01a\x81\x1f\x10\x01a\x00", "\x7f\xff\xff\xff\xff\x0f\x01a", "\xff\x80\x80\x80\x80\x00", "\x40\x83\xff\xff\xff\x00",
	} {
		f.Add([]byte(seed), []byte("\xbe\xbf\xc0"))
	}
	f.Fuzz(func(t *testing.T, first, second []byte) {
		ours := newHPACKDecoder()
		theirs := hpack.NewDecoder(maxDynamicTable, nil)
		for _, block := range [][]byte{first, second} {
			var want, got []headerField
			total := 0
			theirs.SetEmitFunc(func(f hpack.HeaderField) {
				want = append(want, headerField{f.Name, f.Value})
				total += int(f.Size())
			})
			_, wantErr := theirs.Write(block)
			if wantErr == nil {
				wantErr = theirs.Close()
			}
			err := ours.decode(block, func(f headerField) { got = append(got, f) })
			if total > maxHeaderList {
				return // a bound that only we have
			}
			// Two may come at the beginning of a block (RFC 7541, 4.2); the oracle takes the
			// second one only into an empty table. TestHPACK_TableSize has what we take.
			if wantErr != nil && strings.Contains(wantErr.Error(), "table size update MUST occur at the beginning") {
				return
			}
			if (err == nil) != (wantErr == nil) {
				t.Fatalf("%x: %v, the oracle says %v", block, err, wantErr)
			}
			if d := cmp.Diff(want, got, cmp.AllowUnexported(headerField{})); err == nil && d != "" {
				t.Fatalf("%x (-oracle +ours):\n%s", block, d)
			}
			if ours.used > maxDynamicTable || len(ours.dynamic) > maxDynamicTable/32 {
				t.Fatalf("the table has %d bytes, %d fields", ours.used, len(ours.dynamic))
			}
			if err != nil {
				return
			}
		}
	})
}

// TestHPACK_TableSize: the size of the table may change at the beginning of a block, also in
// two steps, and not behind a field while the table has some.
func TestHPACK_TableSize(t *testing.T) {
	t.Parallel()
	for block, want := range map[string]bool{
		"\x20\x82": true, "\x20\x3f\x30\x82": true, "\x3f\x30\x30\x41\x01a": true, "\x82\x20": false,
	} {
		d := newHPACKDecoder()
		if err := d.decode([]byte("\x40\x01a\x01b"), func(headerField) {}); err != nil {
			t.Fatal(err)
		}
		if err := d.decode([]byte(block), func(headerField) {}); (err == nil) != want {
			t.Errorf("%x: %v", block, err)
		}
	}
}

// TestHPACK_Bounds: a table holds what fits to the byte, and a small block that means
// large headers is refused.
func TestHPACK_Bounds(t *testing.T) {
	t.Parallel()
	read := func(d *hpackDecoder, block []byte) error { return d.decode(block, func(headerField) {}) }
	literal := func(value string) []byte {
		b := appendHeader(nil, "n", value)
		b[0] = 0x40 // enters the table
		return b
	}
	for over, want := range []int{1, 0} {
		d := newHPACKDecoder()
		if err := read(&d, literal(strings.Repeat("v", maxDynamicTable-33+over))); err != nil || len(d.dynamic) != want {
			t.Errorf("%d bytes too many: %d fields kept, %v", over, len(d.dynamic), err)
		}
	}
	d := newHPACKDecoder()
	block := append(literal(strings.Repeat("v", 4000)), bytes.Repeat([]byte{0x80 | 62}, 20)...)
	if err := read(&d, block); !errors.Is(err, errHeaderLimit) {
		t.Errorf("%d bytes that mean 80,000: %v", len(block), err)
	}
}
