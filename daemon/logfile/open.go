package logfile

import (
	"errors"
	"path"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// Refused says what is in the place of a log file or its directory.
type Refused struct{ Path, What string }

func (r *Refused) Error() string { return r.Path + " is " + r.What + ", which a log may not be" }

// Device reports whether a path names something that the kernel provides and only root can
// replace, such as /dev/null, /dev/stdout or /proc/1/fd/1. It does not rotate.
func Device(name string) bool {
	dir := path.Dir(path.Clean(name))
	return dir == "/dev" || path.Base(dir) == "fd" && (strings.HasPrefix(dir, "/proc/") || dir == "/dev/fd")
}

// Dir is an open log directory.
type Dir struct {
	fd   int
	path string
}

// OpenDir opens the directory of a log file.
func OpenDir(dir string) (Dir, error) {
	fd, err := unix.Open(dir, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		var st unix.Stat_t
		if unix.Lstat(dir, &st) == nil && st.Mode&unix.S_IFMT == unix.S_IFLNK {
			return Dir{}, &Refused{dir, kind(&st)}
		}
		return Dir{}, err
	}
	return Dir{fd, dir}, nil
}

// MakeDir opens the directory of a log file. It creates it and its parents if necessary.
func MakeDir(dir string) (Dir, error) {
	d, err := OpenDir(dir)
	if errors.Is(err, unix.ENOENT) {
		makeDirectory(dir)
		d, err = OpenDir(dir)
	}
	return d, err
}

// makeDirectory reports no error, because opening the directory shows whether it worked.
func makeDirectory(dir string) {
	if errors.Is(unix.Mkdir(dir, 0o755), unix.ENOENT) && dir != "/" && dir != "." {
		makeDirectory(path.Dir(dir))
		_ = unix.Mkdir(dir, 0o755)
	}
}

// Close closes the directory.
func (d Dir) Close() { unix.Close(d.fd) }

// Open opens an existing log file. Everything else is [Refused] before it is opened, because
// opening alone can have effects: on a FIFO it waits, on a watchdog it starts the timer.
func (d Dir) Open(name string, flags int) (fd int, st unix.Stat_t, err error) {
	place, err := unix.Openat(d.fd, name, unix.O_PATH|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return -1, st, err
	}
	defer unix.Close(place)
	if err := unix.Fstat(place, &st); err != nil {
		return -1, st, err
	}
	if what := kind(&st); what != "" {
		return -1, st, &Refused{path.Join(d.path, name), what}
	}
	// This opens the very file that was examined. O_NONBLOCK: it may have a lease, which an
	// open would wait for.
	fd, err = unix.Open("/proc/self/fd/"+strconv.Itoa(place), flags|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	return fd, st, err
}

// kind is what something other than a log file is.
func kind(st *unix.Stat_t) string {
	switch st.Mode & unix.S_IFMT {
	case unix.S_IFREG:
		if st.Nlink > 1 { // a name for a file of another directory
			return "a file with several hard links"
		}
		return ""
	case unix.S_IFLNK:
		return "a symbolic link"
	case unix.S_IFDIR:
		return "a directory"
	}
	return "a FIFO, a socket or a device"
}

// Create creates a file with mode 0600. It fails with EEXIST if there is anything of that name.
func (d Dir) Create(name string, flags int) (fd int, err error) {
	return unix.Openat(d.fd, name, flags|unix.O_CREAT|unix.O_EXCL|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0o600)
}

// Append opens a log file to append to, and creates it if necessary.
func (d Dir) Append(name string) (fd int, st unix.Stat_t, err error) {
	const flags = unix.O_WRONLY | unix.O_APPEND
	for range 3 { // others rotate and create it too
		if fd, st, err = d.Open(name, flags); !errors.Is(err, unix.ENOENT) {
			return fd, st, err
		}
		if fd, err = d.Create(name, flags); !errors.Is(err, unix.EEXIST) {
			return fd, st, err
		}
	}
	return fd, st, err
}

// Is reports whether a name is that of an open file.
func (d Dir) Is(name string, fd int) bool {
	var open, named unix.Stat_t
	return unix.Fstat(fd, &open) == nil && unix.Fstatat(d.fd, name, &named, unix.AT_SYMLINK_NOFOLLOW) == nil &&
		open.Ino == named.Ino && open.Dev == named.Dev
}

// Remove removes a file.
func (d Dir) Remove(name string) error { return unix.Unlinkat(d.fd, name, 0) }
