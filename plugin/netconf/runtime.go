package netconf

import (
	"errors"
	"net/netip"
	"strconv"

	"cnictl/daemon/api/netnames"
)

// Attachment is one interface of one sandbox, as runtimes name it.
type Attachment struct {
	ContainerID string
	IfName      string
}

// Keys of GC's configuration. Runtimes built on containernetworking/cni 1.2.0 and later
// send both, because the specification first used the second name.
const (
	validAttachmentsKey = "cni.dev/valid-attachments"
	attachmentsKey      = "cni.dev/attachments"
)

// ValidAttachments parses the attachments that GC must keep. given is false without a
// list, which says nothing about any attachment, unlike an empty list. A list that cannot
// be parsed completely is an error, because attachments that are not on it are removed.
func ValidAttachments(stdin []byte) (valid []Attachment, given bool, _ error) {
	if err := checkSyntax(stdin); err != nil {
		return nil, false, err
	}
	d := strictDecoder{cursor: cursor{in: stdin}}
	first := false // the list was found under validAttachmentsKey
	if d.want("object", "network configuration") {
		d.object(func(key string) {
			switch {
			case key != validAttachmentsKey && key != attachmentsKey, d.kind() == "null", first && key == attachmentsKey:
				d.raw()
				return
			}
			first, given, valid = key == validAttachmentsKey, true, nil
			if d.want("array", key) {
				d.array(func() { valid = append(valid, d.attachment()) })
			}
		})
	}
	if d.err != nil {
		return nil, false, wrap("decoding valid attachments from network config: ", d.err)
	}
	return valid, given, nil
}

func (d *strictDecoder) attachment() (a Attachment) {
	d.members("attachment", []string{"containerID", "ifname"}, &a.ContainerID, &a.IfName)
	if d.err == nil && (a.ContainerID == "" || a.IfName == "") {
		d.fail("attachment without containerID or ifname")
	}
	return a
}

// Allocation is an address that the daemon has assigned to a sandbox, according to its
// checkpoint (ipam.json).
type Allocation struct {
	NetworkName  string
	Attachment   Attachment
	Address      netip.Addr
	PodNamespace string // empty if assigned before v1.11
	PodName      string
	AllocatedAt  int64 // ns since 1970; 0 if unknown
}

// Allocations parses a checkpoint. The plugin has its own parser, because
// daemon/api/checkpoint would cost a run more than the rest of the plugin.
func Allocations(file []byte) ([]Allocation, error) {
	if err := checkSyntax(file); err != nil {
		return nil, err
	}
	d := strictDecoder{cursor: cursor{in: file}}
	var out []Allocation
	version := ""
	if d.want("object", "checkpoint") {
		d.object(func(key string) {
			switch key {
			case "version":
				if d.want("string", key) {
					version = d.text()
				}
			case "allocations":
				out = nil
				if d.want("array", key) {
					d.array(func() { out = append(out, d.allocation()) })
				}
			default:
				d.raw()
			}
		})
	}
	if version != netnames.CheckpointVersion {
		d.fail("version is " + strconv.Quote(version) + ", accepted is " + strconv.Quote(netnames.CheckpointVersion))
	}
	if d.err != nil {
		return nil, d.err
	}
	return out, nil
}

func (d *strictDecoder) allocation() (a Allocation) {
	if !d.want("object", "allocation") {
		d.fail("allocation is null")
		return a
	}
	var v4, v6 string
	texts := map[string]*string{
		"networkName": &a.NetworkName, "containerID": &a.Attachment.ContainerID, "ifName": &a.Attachment.IfName, "ipv4": &v4, "ipv6": &v6,
	}
	d.object(func(key string) {
		switch {
		case texts[key] != nil:
			if d.want("string", key) {
				*texts[key] = d.text()
			}
		case key == "allocationTimestamp":
			if d.want("number", key) {
				a.AllocatedAt = d.integer(key)
			}
		case key == "metadata":
			d.members(key, []string{"k8sPodNamespace", "k8sPodName"}, &a.PodNamespace, &a.PodName)
		default:
			d.raw()
		}
	})
	if v4 == "" {
		v4 = v6
	}
	address, err := netip.ParseAddr(v4)
	if err != nil {
		d.fail("allocation has the unusable address " + strconv.Quote(v4))
	}
	a.Address = address.Unmap()
	return a
}

// strictDecoder records an error for the first value of an unexpected type.
type strictDecoder struct {
	cursor
	err error // the first
}

// want checks the kind of the next value. It skips a value of another kind, which is an
// error unless it is null.
func (d *strictDecoder) want(kind, what string) bool {
	got := d.kind()
	if got == kind {
		return true
	}
	if got != "null" {
		d.fail(d.isNot(what, kind))
	}
	d.raw()
	return false
}

func (d *strictDecoder) fail(text string) {
	if d.err == nil {
		d.err = errors.New(text)
	}
}

// members reads some string fields of an object. Keys must match exactly, because programs
// write these documents.
func (d *strictDecoder) members(what string, keys []string, into ...*string) {
	if !d.want("object", what) {
		return
	}
	d.object(func(key string) {
		for i, k := range keys {
			if k == key {
				if d.want("string", key) {
					*into[i] = d.text()
				}
				return
			}
		}
		d.raw()
	})
}

func (d *strictDecoder) integer(what string) int64 {
	n, err := strconv.ParseInt(string(d.raw()), 10, 64)
	if err != nil {
		d.fail(what + " is not an integer")
	}
	return n
}
