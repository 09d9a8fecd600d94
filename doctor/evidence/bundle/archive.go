package bundle

import (
	"archive/tar"
	"bufio"
	"bytes"
	"compress/flate"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"path"
	"strings"
)

// Limits of an archive.
const (
	maxEntries = 100_000
	maxEntry   = 2 << 30 // bytes
	maxTotal   = 4 << 30
	maxRatio   = 500       // unpacked to packed, enforced above freeRatio
	freeRatio  = 256 << 20 // unpacked bytes
	maxNotes   = 100
)

// Refusal is why an archive is refused.
type Refusal struct{ Why string }

func (r *Refusal) Error() string { return "the archive is refused: " + r.Why }

func refuse(format string, args ...any) error { return &Refusal{fmt.Sprintf(format, args...)} }

// archive is an archive that is being read.
type archive struct {
	entries  int
	declared int64 // bytes, by the headers of the entries
	unpacked int64 // bytes that came out of gzip
	notes    []string
	regular  map[string]bool // files that hard links may point to
}

func (a *archive) note(format string, args ...any) {
	switch {
	case len(a.notes) < maxNotes:
		a.notes = append(a.notes, fmt.Sprintf(format, args...))
	case len(a.notes) == maxNotes:
		a.notes = append(a.notes, "…")
	}
}

// walk calls visit for each regular file of an archive: tar, gzipped or not.
func (a *archive) walk(r io.Reader, visit func(name string, body io.Reader) error) error {
	in := bufio.NewReaderSize(r, 64<<10)
	start, err := in.Peek(512)
	if err != nil && !errors.Is(err, io.EOF) {
		return fmt.Errorf("read archive: %w", err)
	}
	var plain io.Reader = in
	switch {
	case len(start) == 0:
		return refuse("it is empty")
	case isGzip(start):
		unpacked, err := a.unpack(in)
		if err != nil {
			return damaged(err)
		}
		inner := bufio.NewReaderSize(unpacked, 64<<10)
		if start, err = inner.Peek(512); err != nil && !errors.Is(err, io.EOF) {
			return damaged(err)
		}
		if isGzip(start) {
			return refuse("it is gzip-compressed more than once")
		}
		plain = inner
	}
	switch {
	case bytes.HasPrefix(start, []byte("PK")):
		return refuse("it is a zip file; tar is accepted, also packed with gzip")
	case len(start) < 512 || string(start[257:262]) != "ustar":
		return refuse("it is not a tar archive, neither plain nor compressed with gzip")
	}
	a.regular = map[string]bool{}
	for t := tar.NewReader(plain); ; {
		h, err := t.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return damaged(err)
		}
		name, err := a.check(h)
		if err != nil {
			return err
		}
		if name == "" {
			continue
		}
		a.regular[name] = true
		if err := visit(name, t); err != nil {
			return err
		}
	}
}

// damaged returns why an archive cannot be read to its end.
func damaged(err error) error {
	var refusal *Refusal
	switch {
	case errors.As(err, &refusal):
		return refusal
	case errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, io.EOF):
		return refuse("it is truncated")
	case errors.Is(err, gzip.ErrHeader), errors.Is(err, gzip.ErrChecksum), errors.Is(err, tar.ErrHeader),
		errors.As(err, new(flate.CorruptInputError)):
		return refuse("it is damaged: %v", err)
	}
	return fmt.Errorf("read archive: %w", err)
}

func isGzip(start []byte) bool { return bytes.HasPrefix(start, []byte{0x1f, 0x8b}) }

// unpacker decompresses gzip, within limits.
type unpacker struct {
	*gzip.Reader
	of      *archive
	in, out int64
}

// unpack decompresses gzip.
func (a *archive) unpack(r io.Reader) (io.Reader, error) {
	u := &unpacker{of: a}
	var err error
	u.Reader, err = gzip.NewReader(bufio.NewReaderSize(&counted{r, &u.in}, 64<<10))
	return u, err
}

func (u *unpacker) Read(b []byte) (int, error) {
	n, err := u.Reader.Read(b)
	u.out += int64(n)
	u.of.unpacked += int64(n)
	switch {
	case u.of.unpacked > maxTotal:
		return 0, refuse("it has more than %d bytes unpacked", int64(maxTotal))
	case u.out > freeRatio && u.out/maxRatio > u.in:
		return 0, refuse("it unpacks to more than %d times its size", maxRatio)
	}
	return n, err
}

// counted counts the bytes read.
type counted struct {
	io.Reader
	n *int64
}

func (c *counted) Read(b []byte) (int, error) {
	n, err := c.Reader.Read(b)
	*c.n += int64(n)
	return n, err
}

// check refuses an entry that no collector makes. If an entry is left out, its name is empty.
func (a *archive) check(h *tar.Header) (name string, err error) {
	if a.entries++; a.entries > maxEntries {
		return "", refuse("it has more than %d entries", maxEntries)
	}
	name = path.Clean(h.Name)
	switch {
	case escapes(h.Name):
		return "", refuse("%.200q is not a path inside the archive", h.Name)
	case h.Size < 0 || h.Size > maxEntry:
		return "", refuse("%.200q has %d bytes; %d are accepted", h.Name, h.Size, int64(maxEntry))
	}
	if a.declared += h.Size; a.declared > maxTotal {
		return "", refuse("its entries have more than %d bytes", int64(maxTotal))
	}
	switch h.Typeflag {
	case tar.TypeReg, tar.TypeGNUSparse, tar.TypeCont:
		return name, nil
	case tar.TypeDir, tar.TypeXGlobalHeader:
		return "", nil
	case tar.TypeSymlink:
		if escapes(path.Join(path.Dir(name), h.Linkname)) || path.IsAbs(h.Linkname) {
			return "", refuse("%.200q is a symbolic link out of the archive, to %.200q", h.Name, h.Linkname)
		}
		a.note("%s is a symbolic link and was left out", name)
	case tar.TypeLink:
		if !a.regular[path.Clean(h.Linkname)] {
			return "", refuse("%.200q is a hard link to %.200q, which is not in the archive", h.Name, h.Linkname)
		}
		a.note("%s is a hard link to %s and was left out", name, path.Clean(h.Linkname))
	case tar.TypeFifo, tar.TypeChar, tar.TypeBlock:
		return "", refuse("%.200q is a device or a named pipe", h.Name)
	default:
		return "", refuse("%.200q is of a kind that is not accepted (%q)", h.Name, h.Typeflag)
	}
	return "", nil
}

// escapes reports whether a path leads out of the archive.
func escapes(name string) bool {
	return name == "" || path.IsAbs(name) || strings.ContainsRune(name, 0) || path.Clean(name) == ".." ||
		strings.HasPrefix(path.Clean(name), "../") ||
		strings.Contains("/"+name+"/", "/../")
}
