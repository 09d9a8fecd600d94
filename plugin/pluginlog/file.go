package pluginlog

import (
	"path"
	"time"

	"golang.org/x/sys/unix"

	"cnictl/daemon/logfile"
)

// appendLog appends to the file in one write, so that the lines of parallel runs don't mix.
//
// The file rotates as upstream's does, except that backups are not compressed: gzip takes half
// a second for 100 MB of these lines, as long as a hundred ADDs, and no process outlives the
// command to do it. Upstream compresses in a goroutine that dies with the process.
func appendLog(name string, b []byte, now func() time.Time) error {
	if logfile.Device(name) { // /dev/null; not /dev/stdout, which is a link
		fd, err := unix.Open(name, unix.O_WRONLY|unix.O_APPEND|unix.O_NOFOLLOW|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
		if err != nil {
			return err
		}
		defer unix.Close(fd)
		_, err = unix.Write(fd, b)
		return err
	}
	dir, err := logfile.MakeDir(path.Dir(name))
	if err != nil {
		return err
	}
	defer dir.Close()
	fd, st, err := dir.Append(path.Base(name))
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	if st.Size >= logfile.MaxSize {
		rotate(dir, path.Base(name), fd, now()) // this run still writes to the old file
	}
	_, err = unix.Write(fd, b)
	return err
}

// rotate renames the file that fd is open on, unless another run is rotating it or already
// has, and removes old backups.
func rotate(dir logfile.Dir, name string, fd int, now time.Time) {
	if unix.Flock(fd, unix.LOCK_EX|unix.LOCK_NB) != nil || !dir.Is(name, fd) {
		return
	}
	if dir.Rotate(name, now) == nil {
		dir.Prune(name, now)
	}
}
