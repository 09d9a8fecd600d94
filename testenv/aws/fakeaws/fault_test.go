package fakeaws_test

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/smithy-go"
	"github.com/google/go-cmp/cmp"

	"cnictl/testenv/aws/fakeaws"
)

func (b *bench) fault(r fakeaws.Rule) (id string) {
	b.t.Helper()
	id, err := b.AddFault(r)
	if err != nil {
		b.t.Fatal(err)
	}
	return id
}

func (b *bench) create(ctx context.Context, ips int32) (*ec2.CreateNetworkInterfaceOutput, error) {
	return b.ec2.CreateNetworkInterface(ctx, &ec2.CreateNetworkInterfaceInput{SubnetId: &b.subnet.ID, SecondaryPrivateIpAddressCount: aws.Int32(ips)})
}

// answerOf returns how the SDK read an answer: EC2's error code, "broken" for any other error,
// "" for success.
func answerOf(err error) string {
	var e smithy.APIError
	switch {
	case err == nil:
		return ""
	case errors.As(err, &e) && !strings.HasPrefix(e.ErrorCode(), "Unknown"):
		return e.ErrorCode()
	}
	return "broken"
}

// For every reply: how the real SDK reads it, and whether the call took effect.
func TestFault_Replies(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		fault fakeaws.Fault
		want  string
		made  int
		log   string
	}{
		{fakeaws.Internal, "InternalError", 0, "InternalError"},
		{fakeaws.Unavailable, "Unavailable", 0, "Unavailable"},
		{fakeaws.Fault{Code: "InternalError", Effect: true}, "InternalError", 1, "InternalError, after effect"},
		{fakeaws.Fault{Reply: fakeaws.ReplyClosed}, "broken", 0, "closed"},
		{fakeaws.Fault{Reply: fakeaws.ReplyClosed, Effect: true}, "broken", 1, "closed, after effect"},
		{fakeaws.Fault{Reply: fakeaws.ReplyTruncated}, "broken", 1, "truncated, after effect"},
		{fakeaws.Fault{Reply: fakeaws.ReplyGarbage}, "broken", 0, "garbage"},
		{fakeaws.Fault{Reply: fakeaws.ReplyGarbage, Effect: true}, "broken", 1, "garbage, after effect"},
		{fakeaws.Fault{Reply: fakeaws.ReplyHTML}, "broken", 0, "html"},
	} {
		t.Run(row.log, func(t *testing.T) {
			t.Parallel()
			b := newBench(t, fakeaws.Options{})
			before := len(b.ENIs())
			b.fault(fakeaws.Rule{Action: "CreateNetworkInterface", Last: 1, Fault: row.fault})
			out, err := b.create(t.Context(), 0)
			got := answerOf(err)
			if err == nil && out.NetworkInterface == nil {
				got = "broken" // the SDK reads an empty answer as success
			}
			if got != row.want {
				t.Errorf("the SDK says %q (%v), want %q", got, err, row.want)
			}
			if made := len(b.ENIs()) - before; made != row.made {
				t.Errorf("%d ENIs made, want %d", made, row.made)
			}
			if log := b.Calls()[0].Fault; log != row.log {
				t.Errorf("logged as %q, want %q", log, row.log)
			}
			if _, err := b.create(t.Context(), 0); err != nil {
				t.Errorf("the call after the fault: %v", err)
			}
			b.noViolations()
		})
	}
}

// Every mutating call loses its reply: it was carried out, and the SDK's retry meets its
// effect.
func TestFault_LostReplies(t *testing.T) {
	t.Parallel()
	b := newBench(t, fakeaws.Options{})
	b.fault(fakeaws.Rule{Action: "*", Fault: fakeaws.Fault{Reply: fakeaws.ReplyClosed, Effect: true}})
	lost := func(what string, err error) {
		t.Helper()
		if answerOf(err) != "broken" {
			t.Fatalf("%s: %v", what, err)
		}
	}
	_, err := b.create(t.Context(), 2)
	lost("create", err)
	e := b.ENIs()[1]
	_, err = b.ec2.AttachNetworkInterface(t.Context(), &ec2.AttachNetworkInterfaceInput{NetworkInterfaceId: &e.ID, InstanceId: &b.instance.ID, DeviceIndex: aws.Int32(1)})
	lost("attach", err)
	if e, _ = b.ENI(e.ID); !e.Attached() {
		t.Errorf("not attached: %+v", e.Attachment)
	}
	_, err = b.ec2.AssignPrivateIpAddresses(t.Context(), &ec2.AssignPrivateIpAddressesInput{NetworkInterfaceId: &e.ID, SecondaryPrivateIpAddressCount: aws.Int32(1)})
	lost("assign", err)
	if e, _ = b.ENI(e.ID); len(e.SecondaryIPs) != 3 {
		t.Errorf("assigned %v, want three", e.SecondaryIPs)
	}
	_, err = b.ec2.UnassignPrivateIpAddresses(t.Context(), &ec2.UnassignPrivateIpAddressesInput{NetworkInterfaceId: &e.ID, PrivateIpAddresses: []string{e.SecondaryIPs[0].String()}})
	lost("unassign", err)
	if e, _ = b.ENI(e.ID); len(e.SecondaryIPs) != 2 {
		t.Errorf("left %v, want two", e.SecondaryIPs)
	}
	_, err = b.ec2.DetachNetworkInterface(t.Context(), &ec2.DetachNetworkInterfaceInput{AttachmentId: &e.Attachment.ID})
	lost("detach", err)
	if e, _ = b.ENI(e.ID); e.Attachment.ID != "" {
		t.Errorf("still attached: %+v", e.Attachment)
	}
	_, err = b.ec2.DeleteNetworkInterface(t.Context(), &ec2.DeleteNetworkInterfaceInput{NetworkInterfaceId: &e.ID})
	lost("delete", err)
	if _, there := b.ENI(e.ID); there {
		t.Error("not deleted")
	}
	b.RemoveFaults()
	if code := refused(b, b.ec2.DeleteNetworkInterface, &ec2.DeleteNetworkInterfaceInput{NetworkInterfaceId: &e.ID}); code != "InvalidNetworkInterfaceID.NotFound" {
		t.Errorf("deleted again: %s", code)
	}
	b.noViolations()
}

func kinds(changes []fakeaws.Change) (out []fakeaws.ChangeKind) {
	for _, c := range changes {
		out = append(out, c.Kind)
	}
	return out
}

// Held attachments: what EC2, the metadata service and the network show before and after
// Settle.
func TestFault_Holds(t *testing.T) {
	t.Parallel()
	attach := func(b *bench, id string) { // through EC2, as a client does
		b.t.Helper()
		must(b, b.ec2.AttachNetworkInterface, &ec2.AttachNetworkInterfaceInput{NetworkInterfaceId: &id, InstanceId: &b.instance.ID, DeviceIndex: aws.Int32(1)})
	}
	detach := func(b *bench, id string) {
		b.t.Helper()
		e, _ := b.ENI(id)
		must(b, b.ec2.DetachNetworkInterface, &ec2.DetachNetworkInterfaceInput{AttachmentId: &e.Attachment.ID})
	}
	type seen struct {
		EC2   string // the attachment's state in DescribeNetworkInterfaces
		IMDS  int    // interfaces that the metadata service shows
		Links []fakeaws.ChangeKind
	}
	for _, row := range []struct {
		hold                 fakeaws.Hold
		action               string
		do                   func(b *bench, id string)
		held, settled, after seen // after: once detached too
	}{
		{fakeaws.HoldAttaching, "AttachNetworkInterface", attach,
			seen{"attaching", 1, nil}, seen{"attached", 2, []fakeaws.ChangeKind{fakeaws.ENIAttached}},
			seen{"", 1, []fakeaws.ChangeKind{fakeaws.ENIAttached, fakeaws.ENIDetached}}},
		{fakeaws.HoldLink, "AttachNetworkInterface", attach,
			seen{"attached", 2, nil}, seen{"attached", 2, []fakeaws.ChangeKind{fakeaws.ENIAttached}},
			seen{"", 1, []fakeaws.ChangeKind{fakeaws.ENIAttached, fakeaws.ENIDetached}}},
		{fakeaws.HoldDetaching, "DetachNetworkInterface", func(b *bench, id string) { attach(b, id); detach(b, id) },
			seen{"detaching", 2, []fakeaws.ChangeKind{fakeaws.ENIAttached}}, seen{"", 1, []fakeaws.ChangeKind{fakeaws.ENIAttached, fakeaws.ENIDetached}}, seen{}},
	} {
		t.Run(string(row.hold), func(t *testing.T) {
			t.Parallel()
			b := newBench(t, fakeaws.Options{})
			e := b.eni(fakeaws.ENISpec{})
			var mu sync.Mutex
			var changes []fakeaws.Change
			defer b.Subscribe(func(c fakeaws.Change) {
				mu.Lock()
				defer mu.Unlock()
				changes = append(changes, c)
			})()
			look := func() seen {
				t.Helper()
				n := must(b, b.ec2.DescribeNetworkInterfaces, &ec2.DescribeNetworkInterfacesInput{NetworkInterfaceIds: []string{e.ID}}).NetworkInterfaces[0]
				state := ""
				if n.Attachment != nil {
					state = string(n.Attachment.Status)
				}
				macs, _ := metadata(t, b.imds(), "network/interfaces/macs")
				mu.Lock()
				defer mu.Unlock()
				return seen{state, len(strings.Fields(macs)), kinds(changes)}
			}
			settle := func() {
				t.Helper()
				if err := b.Settle(e.ID); err != nil {
					t.Fatal(err)
				}
			}
			b.fault(fakeaws.Rule{Action: row.action, Fault: fakeaws.Fault{Hold: row.hold}})
			row.do(b, e.ID)
			b.RemoveFaults()
			if diff := cmp.Diff(row.held, look()); diff != "" {
				t.Errorf("held (-want +got):\n%s", diff)
			}
			settle()
			settle() // there is nothing more to settle
			if diff := cmp.Diff(row.settled, look()); diff != "" {
				t.Errorf("settled (-want +got):\n%s", diff)
			}
			if row.hold == fakeaws.HoldDetaching {
				attach(b, e.ID) // works as if nothing had happened
				return
			}
			detach(b, e.ID)
			if diff := cmp.Diff(row.after, look()); diff != "" {
				t.Errorf("detached (-want +got):\n%s", diff)
			}
		})
	}
}

// EC2 lags: the metadata service and the node show ENIs and addresses before EC2 lists them,
// and hide removed ones while EC2 still does.
func TestDescribeLag(t *testing.T) {
	t.Parallel()
	now := time.Unix(1_800_000_000, 0)
	b := newBench(t, fakeaws.Options{DescribeLag: 10 * time.Second, Now: func() time.Time { return now }})
	type seen struct{ IMDS, EC2, Instance, Addresses int }
	look := func() (s seen) {
		macs, _ := metadata(t, b.imds(), "network/interfaces/macs")
		s.IMDS = len(strings.Fields(macs))
		for _, n := range must(b, b.ec2.DescribeNetworkInterfaces, &ec2.DescribeNetworkInterfacesInput{}).NetworkInterfaces {
			if n.Attachment != nil {
				s.EC2++
				s.Addresses += len(n.PrivateIpAddresses)
			}
		}
		s.Instance = len(must(b, b.ec2.DescribeInstances, &ec2.DescribeInstancesInput{}).Reservations[0].Instances[0].NetworkInterfaces)
		return s
	}
	var got []seen
	step := func() {
		got = append(got, look())
		now = now.Add(5 * time.Second)
	}
	step() // the instance and its primary ENI appear immediately
	e := b.eni(fakeaws.ENISpec{IPs: 1})
	attachment, err := b.AttachENI(fakeaws.AttachSpec{ENIID: e.ID, InstanceID: b.instance.ID, Device: 1})
	if err != nil {
		t.Fatal(err)
	}
	byID := &ec2.DescribeNetworkInterfacesInput{NetworkInterfaceIds: []string{e.ID}}
	if code := refused(b, b.ec2.DescribeNetworkInterfaces, byID); code != "InvalidNetworkInterfaceID.NotFound" {
		t.Errorf("a new ENI: %s, want it not found", code)
	}
	step()
	if err := b.Unassign(e.ID, netip.PrefixFrom(e.SecondaryIPs[0], 32)); err != nil {
		t.Fatal(err)
	}
	step()
	step()
	if err := b.DetachENI(attachment); err != nil {
		t.Fatal(err)
	}
	step()
	step()
	step()
	if diff := cmp.Diff([]seen{{1, 1, 1, 1}, {2, 1, 1, 1}, {2, 1, 1, 1}, {2, 2, 2, 3}, {1, 2, 2, 2}, {1, 2, 2, 2}, {1, 1, 1, 1}}, got); diff != "" {
		t.Errorf("seen every 5 s (-want +got):\n%s", diff)
	}
	b.SetDescribeLag(time.Hour)
	if err := b.DeleteENI(e.ID); err != nil {
		t.Fatal(err)
	}
	if _, err := b.ec2.DescribeNetworkInterfaces(t.Context(), byID); err != nil {
		t.Errorf("an ENI that went since the lag began: %v, want it still listed", err)
	}
	b.SetDescribeLag(0)
	if code := refused(b, b.ec2.DescribeNetworkInterfaces, byID); code != "InvalidNetworkInterfaceID.NotFound" {
		t.Errorf("a deleted ENI without lag: %s", code)
	}
	b.noViolations()
}

// The metadata service keeps showing an ENI and an address that EC2 has removed.
func TestMetadataLag_ShowsWhatIsGone(t *testing.T) {
	t.Parallel()
	b := newBench(t, fakeaws.Options{})
	e := b.eni(fakeaws.ENISpec{IPs: 1})
	attachment, err := b.AttachENI(fakeaws.AttachSpec{ENIID: e.ID, InstanceID: b.instance.ID, Device: 1})
	if err != nil {
		t.Fatal(err)
	}
	b.SetMetadataLag(time.Hour)
	if err := errors.Join(b.Unassign(e.ID, netip.PrefixFrom(e.SecondaryIPs[0], 32)), b.DetachENI(attachment), b.DeleteENI(e.ID)); err != nil {
		t.Fatal(err)
	}
	if got, _ := metadata(t, b.imds(), "network/interfaces/macs/"+e.MAC+"/local-ipv4s"); got != fmt.Sprintf("%s\n%s", e.PrimaryIP, e.SecondaryIPs[0]) {
		t.Errorf("addresses of a deleted ENI: %q", got)
	}
	b.SetMetadataLag(0)
	if got, _ := metadata(t, b.imds(), "network/interfaces/macs"); strings.Contains(got, e.MAC) {
		t.Errorf("without lag: %q", got)
	}
	b.noViolations()
}
