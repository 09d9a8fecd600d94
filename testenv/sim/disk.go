package sim

import (
	"bytes"
	"time"

	"cnictl/daemon/api/checkpoint"
	"cnictl/daemon/api/netnames"
	"cnictl/daemon/keeper"
)

// disk holds the checkpoint file of a node.
type disk struct {
	there bool
	file  []byte // durable
}

// holds reports whether the file contains a sandbox's allocation.
func (d *disk) holds(s *sandbox) bool {
	return d.there && bytes.Contains(d.file, []byte(`"`+s.id+`"`)) && bytes.Contains(d.file, []byte(`"`+s.address.String()+`"`))
}

// holdsForAnother reports whether the file assigns a sandbox's address to another sandbox
// only.
func (d *disk) holdsForAnother(s *sandbox) bool {
	another := false
	entries, _ := checkpoint.Decode(d.file) // a damaged file has no entries
	for _, e := range entries {
		switch {
		case e.Address() != s.address:
		case e.ContainerID == s.id || e.NetworkName == netnames.RecoveredNetwork && e.ContainerID == s.pod.link:
			return false
		default:
			another = true
		}
	}
	return another
}

// write carries out a process's write and reports its end. Until then the keeper must not
// change the bytes.
func (p *process) write(i keeper.Image) {
	w, n := p.node.w, p.node
	took, failed, renamed := w.dice.faults.span(200*time.Microsecond, 6*time.Millisecond), false, true
	switch {
	case w.strike(w.Scenario.DiskFaults, FaultHang):
		took = w.dice.faults.span(time.Second, 15*time.Second)
	case w.strike(w.Scenario.DiskFaults, FaultDisk):
		failed, renamed = true, false
	case w.strike(w.Scenario.DiskFaults, FaultSync):
		failed = true
	}
	p.mayDie(w.Scenario.CrashAtWrite)
	image := i.Files[0].Data // nodes have one network card
	before := bytes.Clone(image)
	if w.Scenario.Mistake == answerBeforeDurable {
		image = before
		p.post(keeper.Committed{Gen: i.Gen})
	}
	w.after(took, func() {
		if p.dead {
			// If the process died after the rename, the file has been written.
			if w.dice.crashes.chance(0.5) && p == n.last {
				n.disk.replace(before)
			}
			return
		}
		if !bytes.Equal(before, image) {
			w.violate("image", "%s: the keeper changed image %d while it was written", n.name, i.Gen)
		}
		if renamed {
			n.disk.replace(before)
		}
		p.mayDie(w.Scenario.CrashAtWrite)
		var err error
		if failed {
			err = errDisk
		}
		w.tracef("%s: image %d written, %d bytes, renamed %v: %v", n.name, i.Gen, len(before), renamed, errText(err))
		w.after(w.dice.faults.span(0, 200*time.Microsecond), func() {
			if w.Scenario.Mistake != answerBeforeDurable {
				p.post(keeper.Committed{Gen: i.Gen, Err: err})
			}
		})
	})
}

func (d *disk) replace(data []byte) { d.there, d.file = true, data }
