package vpc

import (
	"errors"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"cnictl/daemon/netstate"
	"cnictl/plugin/netconf"
	"cnictl/plugin/podnet/apply"
	"cnictl/plugin/skel"
)

// DefaultRecords is where the plugin records which VLAN device belongs to which sandbox.
const DefaultRecords = "/var/run/aws-node/attachments"

// records are the records of pods with branch ENIs, one file per attachment. A VLAN id
// belongs to the attachment whose file names it: ADD removes other attachments' files with
// its id, since VLAN ids, and the names and addresses of pods, are reused. openRecords
// locks the directory, so that a late DEL and an ADD with the same VLAN id do not see each
// other's half-finished work.
type records struct {
	dir    int
	path   string
	locked bool
}

// lockPatience is how long to wait for the lock. Its holder is a run of the plugin that
// works in the kernel for milliseconds. A stuck run must not block the pods of the node:
// each file is written atomically, so the records are usable without the lock. All that is
// lost is the order of two runs with the same VLAN id, one of them stuck.
const (
	lockPatience = 5 * time.Second
	lockPause    = 5 * time.Millisecond
)

var errLockHeld = errors.New("another run of the plugin has held the lock for " + strconv.Itoa(int(lockPatience/time.Second)) + " s")

// openRecords opens and locks the records. If there are none, it fails with ENOENT.
func openRecords(path string) (*records, error) {
	r, err := readRecords(path)
	if err != nil {
		return nil, err
	}
	if r.locked, err = lock(r.dir); err != nil {
		r.close()
		return nil, recordError("lock", path, err)
	}
	return r, nil
}

// readRecords opens the records without locking them.
func readRecords(path string) (*records, error) {
	fd, err := unix.Open(path, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, recordError("open", path, err)
	}
	return &records{dir: fd, path: path}, nil
}

// lock returns false if another run has held the lock for too long.
func lock(fd int) (bool, error) {
	again := time.NewTicker(lockPause)
	defer again.Stop()
	for left := lockPatience; ; left -= lockPause {
		err := unix.Flock(fd, unix.LOCK_EX|unix.LOCK_NB)
		switch {
		case err == nil:
			return true, nil
		case errors.Is(err, unix.EINTR):
		case !errors.Is(err, unix.EWOULDBLOCK):
			return false, err
		case left <= 0:
			return false, nil
		}
		<-again.C
	}
}

// makeRecords opens the records for ADD, and creates the directory if necessary.
func (c *command) makeRecords() (*records, error) {
	err := unix.Mkdir(c.Records, 0o700)
	if err != nil && !errors.Is(err, unix.EEXIST) {
		return nil, recordError("make", c.Records, err)
	}
	return c.openRecords()
}

// openRecords opens the records for ADD, DEL or GC, which proceed even without the lock.
func (c *command) openRecords() (*records, error) {
	r, err := openRecords(c.Records)
	if err == nil && !r.locked {
		c.log.Warn("Could not lock the records: " + c.Records + ": " + errLockHeld.Error())
	}
	return r, err
}

func recordError(verb, path string, err error) error { return &fileError{verb, path, err} }

func (r *records) close() { unix.Close(r.dir) }

const recordSuffix = ".json"

// recordName has no slash: both parts passed the checks of CNI_CONTAINERID and
// CNI_IFNAME.
func recordName(a netconf.Attachment) string { return a.ContainerID + "-" + a.IfName + recordSuffix }

// maxRecord limits the size of a file; a real one has some 400 bytes.
const maxRecord = 8 << 10

// readRecord reads one file; nil if it does not exist.
func readRecord(dir int, name string) (*netconf.BranchRecord, error) {
	fd, err := unix.Openat(dir, name, unix.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	if errors.Is(err, unix.ENOENT) {
		return nil, nil
	}
	if err != nil {
		return nil, recordError("open", name, err)
	}
	defer unix.Close(fd)
	var file [maxRecord]byte
	n, err := unix.Read(fd, file[:])
	if err != nil {
		return nil, recordError("read", name, err)
	}
	rec, err := netconf.ParseBranchRecord(file[:n])
	if err == nil && recordName(rec.Attachment) != name[strings.LastIndexByte(name, '/')+1:] {
		err = errors.New("it belongs to another attachment")
	}
	if err != nil {
		return nil, recordError("read", name, err)
	}
	return &rec, nil
}

// record returns the record of an attachment, nil if none. It does not lock: only DEL and
// CHECK of the attachment itself read it, and on most nodes the file does not exist.
func (c *command) record(a netconf.Attachment) *netconf.BranchRecord {
	rec, err := readRecord(unix.AT_FDCWD, c.Records+"/"+recordName(a))
	if err != nil {
		c.log.Warn("Ignoring the record of a branch ENI: " + err.Error())
	}
	return rec
}

// list reads all records, and works only once. Unreadable records are left out.
func (r *records) list() ([]netconf.BranchRecord, error) {
	var out []netconf.BranchRecord
	buf := make([]byte, 8<<10)
	for {
		n, err := unix.ReadDirent(r.dir, buf)
		if err != nil {
			return nil, recordError("list", r.path, err)
		}
		if n == 0 {
			return out, nil
		}
		_, _, names := unix.ParseDirent(buf[:n], -1, nil)
		for _, name := range names {
			if !strings.HasSuffix(name, recordSuffix) {
				continue
			}
			if rec, err := readRecord(r.dir, name); err == nil && rec != nil {
				out = append(out, *rec)
			}
		}
	}
}

// holder returns the record of another attachment that has a VLAN id; nil if none. A
// record whose branch ENI is not that of the existing device is stale: a plugin without
// records, as after a downgrade, has deleted that pod. holder removes it.
func (r *records) holder(vlan int, own netconf.Attachment) (*netconf.BranchRecord, error) {
	all, err := r.list()
	if err != nil {
		return nil, err
	}
	for i := range all {
		rec := &all[i]
		if rec.VLAN != vlan || rec.Attachment == own {
			continue
		}
		mac, ok := netstate.ParseMAC(rec.MAC)
		if !ok {
			return rec, nil
		}
		stale, err := apply.VLANHasOtherMAC(vlan, mac)
		if err != nil {
			return nil, err
		}
		if !stale {
			return rec, nil
		}
		r.remove(rec.Attachment)
	}
	return nil, nil
}

// take records an attachment, and removes the records of others that have lost its VLAN
// id.
func (r *records) take(rec netconf.BranchRecord) error {
	all, err := r.list()
	if err != nil {
		return err
	}
	for _, other := range all {
		if other.VLAN == rec.VLAN && other.Attachment != rec.Attachment {
			r.remove(other.Attachment)
		}
	}
	name := recordName(rec.Attachment)
	temporary := name + ".new"
	fd, err := unix.Openat(r.dir, temporary, unix.O_WRONLY|unix.O_CREAT|unix.O_TRUNC|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0o600)
	if err != nil {
		return recordError("write", temporary, err)
	}
	text := recordText(rec)
	n, err := unix.Write(fd, text)
	if closeErr := unix.Close(fd); err == nil {
		err = closeErr
	}
	if err == nil && n < len(text) {
		err = unix.ENOSPC
	}
	if err == nil {
		err = unix.Renameat(r.dir, temporary, r.dir, name)
	}
	if err != nil {
		_ = unix.Unlinkat(r.dir, temporary, 0)
		return recordError("write", name, err)
	}
	return nil
}

func (r *records) remove(a netconf.Attachment) { _ = unix.Unlinkat(r.dir, recordName(a), 0) }

func recordText(rec netconf.BranchRecord) []byte {
	var o skel.Object
	o.Open('{')
	o.TextIf("networkName", rec.NetworkName)
	o.Text("containerID", rec.Attachment.ContainerID)
	o.Text("ifname", rec.Attachment.IfName)
	o.Text("podNamespace", rec.PodNamespace)
	o.Text("podName", rec.PodName)
	o.Text("vlan", strconv.Itoa(rec.VLAN))
	o.Text("mac", rec.MAC)
	o.Text("address", rec.Address)
	o.Text("hostLink", rec.HostLink)
	o.TextIf("policyMode", rec.PolicyMode)
	o.Close('}')
	return o.Bytes()
}
