package fakeaws

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"cnictl/capacity/limits"
)

// Trunk and branch ENIs: the VPC resource controller's changes to the world, through calls
// that ordinary accounts may not make. They are not EC2 actions here, as no public SDK offers
// them: only these methods create a trunk or an association. Both appear in the answers of
// EC2 and IMDS like any ENI.

const (
	typeBranch = "branch"
	typeTrunk  = "trunk"

	lowestVLAN, highestVLAN = 1, 4094 // of 802.1Q
)

// TrunkSpec describes a trunk ENI to add to an instance.
type TrunkSpec struct {
	InstanceID     string
	Device         int      // on card 0
	SubnetID       string   // default: the instance's
	SecurityGroups []string // default: the primary ENI's
	Description    string
	Tags           map[string]string
	// MetadataAfter and DescribeAfter are how long after the attachment completes IMDS and
	// EC2's lists first show the trunk, in addition to the delays of all ENIs in Options.
	// Either may be ahead of the other.
	MetadataAfter, DescribeAfter time.Duration
}

// Association ties a branch ENI to a trunk ENI under a VLAN id.
type Association struct {
	ID            string // "trunk-assoc-…"
	Trunk, Branch string // ENI ids
	VLAN          int
}

// trunks is the part of a World for trunk and branch ENIs. Its maps are created on the first
// write.
type trunks struct {
	associations map[string]Association // by id
	veils        map[string]veil        // by ENI id
}

// veil hides an ENI from what a node can see.
type veil struct{ metadata, describe bool }

// SetLimits changes the limits of an instance type, also for its running instances. What exceeds
// lower ones stays.
func (w *World) SetLimits(l limits.Instance) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.types[l.Type] = l
	for _, i := range w.instances {
		if i.limits.Type == l.Type {
			i.limits = l
		}
	}
}

// InstanceLimits returns the limits of an instance's type.
func (w *World) InstanceLimits(instanceID string) (limits.Instance, bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	i := w.instances[instanceID]
	if i == nil {
		return limits.Instance{}, false
	}
	return i.limits, true
}

// AddTrunk creates a trunk ENI and attaches it; it is deleted with its instance. If it
// cannot be attached, it is deleted.
func (w *World) AddTrunk(s TrunkSpec) (ENI, error) {
	w.mu.Lock()
	i := w.instances[s.InstanceID]
	if i == nil {
		w.mu.Unlock()
		return ENI{}, noInstance(s.InstanceID)
	}
	s.SubnetID = cmp.Or(s.SubnetID, i.SubnetID)
	if len(s.SecurityGroups) == 0 && w.enis[i.PrimaryENI] != nil {
		s.SecurityGroups = slices.Clone(w.enis[i.PrimaryENI].SecurityGroups)
	}
	w.mu.Unlock()
	e, err := w.CreateENI(ENISpec{SubnetID: s.SubnetID, Description: s.Description, Type: typeTrunk, SecurityGroups: s.SecurityGroups, Tags: s.Tags})
	if err != nil {
		return ENI{}, err
	}
	w.veil(e.ID, s)
	if _, err := w.AttachENI(AttachSpec{ENIID: e.ID, InstanceID: s.InstanceID, Device: s.Device, DeleteOnTermination: true}); err != nil {
		_ = w.DeleteENI(e.ID) // it was created above and nobody else knows it
		return ENI{}, err
	}
	e, _ = w.ENI(e.ID)
	return e, nil
}

// veil hides a new trunk from IMDS and from EC2's lists for the times in s.
func (w *World) veil(eniID string, s TrunkSpec) {
	w.mu.Lock()
	defer w.mu.Unlock()
	v := veil{metadata: s.MetadataAfter > 0, describe: s.DescribeAfter > 0}
	if v == (veil{}) {
		return
	}
	if w.trunks.veils == nil {
		w.trunks.veils = make(map[string]veil)
	}
	w.trunks.veils[eniID] = v
	attached := w.wire.attachDelay()
	if v.metadata {
		w.later(attached+s.MetadataAfter, func() { w.unveil(eniID, true, false) })
	}
	if v.describe {
		w.later(attached+s.DescribeAfter, func() { w.unveil(eniID, false, true) })
	}
}

// unveil ends parts of a veil. The caller holds mu.
func (w *World) unveil(eniID string, metadata, describe bool) {
	v, there := w.trunks.veils[eniID]
	if !there {
		return
	}
	v.metadata, v.describe = v.metadata && !metadata, v.describe && !describe
	w.trunks.veils[eniID] = v
	if v == (veil{}) {
		delete(w.trunks.veils, eniID)
	}
	if e := w.enis[eniID]; e != nil {
		w.refreshENI(e)
	}
}

// unveiled omits what EC2's lists do not show yet. The caller holds mu.
func (w *World) unveiled(all map[string]*ENI) map[string]*ENI {
	if len(w.trunks.veils) == 0 {
		return all
	}
	shown := maps.Clone(all)
	for id, v := range w.trunks.veils {
		if v.describe {
			delete(shown, id)
		}
	}
	return shown
}

// AssociateSpec describes an association.
type AssociateSpec struct {
	Trunk, Branch string // ENI ids
	VLAN          int
	// Collide accepts a VLAN id that the trunk already uses. What EC2 does then is not
	// documented; a world refuses it otherwise.
	Collide bool
}

// AssociateBranch makes an ENI a branch of a trunk. The ENI is "in-use" without an
// attachment, as EC2 shows branches. Where EC2's error codes are not documented (the two
// limits and a used VLAN id), the codes are our own.
func (w *World) AssociateBranch(s AssociateSpec) (Association, error) {
	var a Association
	err := w.update(func() error {
		trunk, branch, err := w.checkAssociate(s)
		if err != nil {
			return err
		}
		a = Association{ID: w.newID("trunk-assoc"), Trunk: s.Trunk, Branch: s.Branch, VLAN: s.VLAN}
		if w.trunks.associations == nil {
			w.trunks.associations = make(map[string]Association)
		}
		w.trunks.associations[a.ID] = a
		branch.Type, branch.Status = typeBranch, statusInUse
		w.emitBranch(BranchAssociated, trunk, branch, a)
		return nil
	})
	return a, err
}

func (w *World) checkAssociate(s AssociateSpec) (trunk, branch *ENI, err error) {
	trunk, branch = w.enis[s.Trunk], w.enis[s.Branch]
	switch {
	case trunk == nil:
		return nil, nil, noENI(s.Trunk)
	case branch == nil:
		return nil, nil, noENI(s.Branch)
	case trunk.Type != typeTrunk || !trunk.Attached():
		return nil, nil, fail(codeInvalidCombination, "Network interface '%s' is not an attached trunk", s.Trunk)
	case branch.Status != statusAvailable:
		return nil, nil, fail(codeENIInUse, "Interface: [%s] in use.", s.Branch)
	case branch.AZ != trunk.AZ || branch.VPCID != trunk.VPCID:
		return nil, nil, fail(codeInvalidCombination, "The branch and the trunk are not in the same availability zone and VPC")
	case s.VLAN < lowestVLAN || s.VLAN > highestVLAN:
		return nil, nil, fail(codeInvalidValue, "Value (%d) for parameter VlanId is invalid: %d to %d is accepted", s.VLAN, lowestVLAN, highestVLAN)
	}
	there := w.associationsOf(s.Trunk)
	if max := w.instances[trunk.Attachment.InstanceID].limits.BranchENIs; len(there) >= max {
		return nil, nil, fail(codeAttachLimit, "Trunk '%s' has %d associations, the limit of its instance type", s.Trunk, len(there))
	}
	for _, a := range there {
		if a.VLAN == s.VLAN && !s.Collide {
			return nil, nil, fail(codeInvalidValue, "VLAN id %d is in use on trunk '%s' by '%s'", s.VLAN, s.Trunk, a.Branch)
		}
	}
	return trunk, branch, nil
}

// DisassociateBranch ends an association; the branch becomes an ordinary, available ENI.
func (w *World) DisassociateBranch(associationID string) error {
	return w.update(func() error {
		a, there := w.trunks.associations[associationID]
		if !there {
			return fail("InvalidAssociationID.NotFound", "The association ID '%s' does not exist", associationID)
		}
		w.disassociate(a)
		return nil
	})
}

// dissolve ends the associations of an ENI that is being deleted. EC2 deletes a branch that
// is still associated, and the controller relies on it: it does not always know the
// association's id. The caller holds mu.
func (w *World) dissolve(e *ENI) {
	for _, a := range w.trunks.associations {
		if a.Branch == e.ID || a.Trunk == e.ID {
			w.disassociate(a)
		}
	}
	delete(w.trunks.veils, e.ID)
}

func (w *World) disassociate(a Association) {
	delete(w.trunks.associations, a.ID)
	trunk, branch := w.enis[a.Trunk], w.enis[a.Branch]
	branch.Type, branch.Status = "interface", statusAvailable
	w.emitBranch(BranchDisassociated, trunk, branch, a)
}

func (w *World) emitBranch(kind ChangeKind, trunk, branch *ENI, a Association) {
	c := w.eniChange(kind, branch, nil)
	c.Branch = a
	if i := w.instances[trunk.Attachment.InstanceID]; i != nil {
		c.Instance = i.public()
	}
	w.emit(c)
}

// Associations lists a trunk's associations by VLAN id.
func (w *World) Associations(trunkID string) []Association {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.associationsOf(trunkID)
}

func (w *World) associationsOf(trunkID string) []Association {
	var out []Association
	for _, a := range w.trunks.associations {
		if a.Trunk == trunkID {
			out = append(out, a)
		}
	}
	slices.SortFunc(out, func(a, b Association) int { return cmp.Or(a.VLAN-b.VLAN, cmp.Compare(a.ID, b.ID)) })
	return out
}
