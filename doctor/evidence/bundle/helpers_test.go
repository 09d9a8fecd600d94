package bundle

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"testing"
	"time"
)

var noon = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

// entry is a file of an archive, or anything else if it has a header.
type entry struct {
	name, text string
	header     tar.Header
}

func tarred(t testing.TB, entries ...entry) []byte {
	t.Helper()
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for _, e := range entries {
		h := e.header
		h.Name, h.Size, h.Mode, h.ModTime = e.name, int64(len(e.text)), 0o600, noon
		if err := w.WriteHeader(&h); err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(w, e.text); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func zipped(t testing.TB, data []byte) []byte {
	t.Helper()
	var b bytes.Buffer
	w, err := gzip.NewWriterLevel(&b, gzip.BestSpeed)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.Write(data); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// packed returns an archive as eks-log-collector's tar creates it.
func packed(t testing.TB, entries ...entry) []byte { return zipped(t, tarred(t, entries...)) }

// block is the header of an entry as GNU tar writes it, with fields that archive/tar cannot
// write.
func block(name string, kind byte, size, real int64) []byte {
	b := make([]byte, 512)
	copy(b, name)
	copy(b[100:], "0000600\x00")
	copy(b[124:], fmt.Sprintf("%011o\x00", size))
	copy(b[136:], fmt.Sprintf("%011o\x00", noon.Unix()))
	b[156] = kind
	copy(b[257:], "ustar  \x00")
	if kind == tar.TypeGNUSparse { // one empty data segment at the end
		copy(b[386:], fmt.Sprintf("%011o\x00%011o\x00", real, 0))
		copy(b[483:], fmt.Sprintf("%011o\x00", real))
	}
	copy(b[148:], "        ")
	sum := 0
	for _, c := range b {
		sum += int(c)
	}
	copy(b[148:], fmt.Sprintf("%06o\x00 ", sum))
	return b
}

// again returns the same bytes a number of times.
type again struct {
	data  []byte
	at    int
	times int
}

func (a *again) Read(b []byte) (int, error) {
	if a.at == len(a.data) {
		a.at = 0
		a.times--
	}
	if a.times <= 0 {
		return 0, io.EOF
	}
	n := copy(b, a.data[a.at:])
	a.at += n
	return n, nil
}
