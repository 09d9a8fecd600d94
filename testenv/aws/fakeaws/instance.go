package fakeaws

import (
	"maps"
	"slices"
	"strings"

	"cnictl/capacity/limits"
)

// AddInstance starts an instance with its primary ENI.
func (w *World) AddInstance(s InstanceSpec) (*Instance, error) {
	var out Instance
	err := w.update(func() error {
		i, err := w.addInstance(s)
		if err == nil {
			out = i.public()
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	return &out, nil
}

func (w *World) addInstance(s InstanceSpec) (*instance, error) {
	l, ok := w.typeLimits(s.Type)
	if !ok {
		return nil, fail(codeTypeNotFound, "The instance type '%s' does not exist", s.Type)
	}
	if s.ID != "" && !strings.HasPrefix(s.ID, "i-") {
		return nil, fail("InvalidInstanceID.Malformed", "Invalid id: \"%s\"", s.ID)
	}
	if w.instances[s.ID] != nil {
		return nil, fail(codeInvalidValue, "instance '%s' exists already", s.ID)
	}
	if n := w.subnets[s.SubnetID]; n != nil && !n.CIDR.IsValid() {
		return nil, fail(codeUnsupported, "The world has no instances in IPv6-only subnets")
	}
	spec := ENISpec{SubnetID: s.SubnetID, SecurityGroups: s.SecurityGroups, PrimaryIP: s.PrivateIP}
	if s.IPv6 {
		spec.IPv6s = 1
	}
	e, err := w.createENI(spec)
	if err != nil {
		return nil, err
	}
	if s.ID == "" {
		s.ID = w.newID("i")
	}
	if s.Role == "" {
		s.Role = "node-role"
	}
	i := &instance{
		Instance: Instance{ID: s.ID, Type: s.Type, SubnetID: e.SubnetID, VPCID: e.VPCID, AZ: e.AZ, PrimaryENI: e.ID,
			PrimaryMAC: e.MAC, PrimaryIP: e.PrimaryIP, Tags: tagsOf(s.Tags), Role: s.Role},
		limits: l, started: w.opts.Now().UTC(), attach: make(chan struct{}, 1),
	}
	w.instances[i.ID] = i
	w.wire.do(func() { w.wire.iam.keys[accessKeyOf(i.ID)] = i.ID })
	e.Status = statusInUse
	e.Attachment = Attachment{ID: w.newID("eni-attach"), InstanceID: i.ID, Card: l.DefaultCard, Status: statusAttached, DeleteOnTermination: true}
	w.emit(Change{Kind: InstanceAdded, Instance: i.public()})
	w.emit(w.eniChange(ENIAttached, e, nil))
	i.views = nil
	w.refreshENI(e)
	w.listAtOnce(e)
	return i, nil
}

func (i *instance) public() Instance {
	c := i.Instance
	c.Tags = maps.Clone(i.Tags)
	return c
}

// RemoveInstance terminates an instance: its delete-on-termination ENIs are deleted, the
// others become available.
func (w *World) RemoveInstance(id string) error {
	return w.update(func() error {
		i := w.instances[id]
		if i == nil {
			return noInstance(id)
		}
		for _, e := range w.attachedTo(id) {
			doomed := e.Attachment.DeleteOnTermination
			w.unlink(e)
			if doomed {
				w.deleteENI(e)
			}
		}
		delete(w.instances, id)
		w.emit(Change{Kind: InstanceRemoved, Instance: i.public()})
		return nil
	})
}

// attachedTo lists an instance's ENIs by card and device, whatever the state of their
// attachment.
func (w *World) attachedTo(instanceID string) []*ENI { return attachedIn(w.enis, instanceID) }

func attachedIn(enis map[string]*ENI, instanceID string) []*ENI {
	var out []*ENI
	for _, e := range enis {
		if e.Attachment.ID != "" && e.Attachment.InstanceID == instanceID {
			out = append(out, e)
		}
	}
	slices.SortFunc(out, func(a, b *ENI) int {
		if a.Attachment.Card != b.Attachment.Card {
			return a.Attachment.Card - b.Attachment.Card
		}
		return a.Attachment.Device - b.Attachment.Device
	})
	return out
}

// AttachSpec describes where to attach an ENI.
type AttachSpec struct {
	ENIID, InstanceID   string
	Card, Device        int
	DeleteOnTermination bool // EC2's call leaves it unset
	Hold                Hold // HoldAttaching or HoldLink: pending until Settle
}

// AttachENI attaches a network interface; the attachment completes after
// Options.AttachDelay.
func (w *World) AttachENI(s AttachSpec) (attachmentID string, err error) {
	err = w.update(func() error {
		i, e, err := w.checkAttach(s)
		if err != nil {
			return err
		}
		attachmentID = w.newID("eni-attach")
		e.Status = statusInUse
		e.Attachment = Attachment{ID: attachmentID, InstanceID: i.ID, Card: s.Card, Device: s.Device, Status: statusAttaching, DeleteOnTermination: s.DeleteOnTermination}
		w.held[attachmentID] = s.Hold
		if s.Hold != HoldAttaching {
			w.later(w.wire.attachDelay(), func() { w.completeAttach(e, attachmentID) })
		}
		return nil
	})
	return attachmentID, err
}

func (w *World) checkAttach(s AttachSpec) (*instance, *ENI, error) {
	i, e := w.instances[s.InstanceID], w.enis[s.ENIID]
	switch {
	case e == nil:
		return nil, nil, noENI(s.ENIID)
	case i == nil:
		return nil, nil, noInstance(s.InstanceID)
	case e.Attachment.ID != "":
		return nil, nil, fail(codeENIInUse, "Interface: [%s] in use.", e.ID)
	case e.AZ != i.AZ:
		return nil, nil, fail(codeInvalidCombination, "You may not attach a network interface to an instance if they are not in the same availability zone")
	case e.VPCID != i.VPCID:
		return nil, nil, fail(codeInvalidCombination, "Network interface and instance are in different VPCs")
	case s.Device < 0:
		return nil, nil, fail(codeInvalidValue, "Value (%d) for parameter deviceIndex is invalid", s.Device)
	}
	room, ok := cardLimit(i.limits, s.Card)
	if !ok {
		return nil, nil, fail(codeInvalidValue, "Value (%d) for parameter networkCardIndex is invalid: instance type '%s' has no such card", s.Card, i.Type)
	}
	on := 0
	for _, o := range w.attachedTo(i.ID) {
		if o.Attachment.Card != s.Card {
			continue
		}
		on++
		if o.Attachment.Device == s.Device {
			return nil, nil, fail(codeInvalidValue, "Instance '%s' already has an interface attached at device index '%d'.", i.ID, s.Device)
		}
	}
	if on >= room {
		return nil, nil, fail(codeAttachLimit, "Interface count %d exceeds the limit for %s", on+1, i.Type)
	}
	if err := checkSlots(&ENI{ID: e.ID}, i, e.slots(), e.slots6(), len(e.Prefixes) > 0); err != nil {
		return nil, nil, err
	}
	return i, e, nil
}

func cardLimit(l limits.Instance, card int) (int, bool) {
	for _, c := range l.Cards {
		if c.Index == card {
			return c.MaxENIs, true
		}
	}
	return 0, false
}

// DetachENI ends an attachment after Options.DetachDelay. It has no Force, which matters only
// for attachments that EC2 cannot end; the world has none.
func (w *World) DetachENI(attachmentID string) error { return w.detachENI(attachmentID, "") }

func (w *World) detachENI(attachmentID string, hold Hold) error {
	return w.update(func() error {
		e := w.byAttachment(attachmentID)
		if e == nil {
			return noAttachment(attachmentID)
		}
		if e.Primary() {
			return fail(codeNotPermitted, "The network interface at device index 0 cannot be detached.")
		}
		if e.Attachment.Status == statusDetaching {
			return fail(codeIncorrectState, "The attachment '%s' is already detaching", attachmentID)
		}
		if e.Attachment.Status == statusAttaching {
			w.held[attachmentID] = HoldLink // there is no link to remove
		}
		e.Attachment.Status = statusDetaching
		if hold == HoldDetaching {
			return nil
		}
		w.later(w.wire.detachDelay(), func() { w.completeDetach(e, attachmentID) })
		return nil
	})
}

func (w *World) byAttachment(id string) *ENI {
	for _, e := range w.enis {
		if id != "" && e.Attachment.ID == id {
			return e
		}
	}
	return nil
}
