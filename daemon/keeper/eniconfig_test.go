package keeper

import (
	"errors"
	"testing"
	"time"

	"cnictl/daemon/api/cause"
	"cnictl/daemon/warmpool"
)

// TestENIConfig_Awaited: a pod of a daemon that has just started waits for the API server's
// answer, and a waiting pod may be retried. A certain failure fails at once.
func TestENIConfig_Awaited(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		name  string
		said  *ENIConfigRead
		waits bool
	}{
		{"nothing was said yet", nil, true},
		{"the API server is away", &ENIConfigRead{Name: "zone-a", Err: errors.New("timeout"), Unread: true}, true},
		{"it is missing", &ENIConfigRead{Name: "zone-a", Err: errors.New("not found")}, false},
	} {
		b := customBench(t)
		b.settings.NodeWait = time.Second // there is an API server
		if row.said != nil {
			b.send(*row.said)
		}
		r := b.add("a", time.Minute)
		b.send(r.Add)
		if !row.waits {
			if got := r.got(t); got.Cause != string(cause.ENIConfigMissing) || got.Transient {
				t.Errorf("%s: %+v", row.name, got)
			}
			continue
		}
		r.unanswered(t, row.name)
		late := b.add("b", 0)
		b.send(late.Add)
		if got := late.got(t); got.Cause != string(cause.ENIConfigMissing) || !got.Transient {
			t.Errorf("%s, and no time to wait: %+v", row.name, got)
		}
		b.send(eniConfig(customSubnet))
		b.list()
		b.Step(b.clock)
		r.unanswered(t, "while an ENI is made")
		if task, ok := lastOp(b, warmpool.PendingAttach); !ok || task.SubnetID != customSubnet {
			t.Errorf("%s: then %+v", row.name, task.create)
		}
	}
}

// TestENIConfig_NewSubnet: a subnet that is newer than the list of subnets causes no failure
// before the list is read again.
func TestENIConfig_NewSubnet(t *testing.T) {
	t.Parallel()
	const unlisted = "subnet-0cccccccccccccccc"
	b := customBench(t)
	b.send(eniConfig(unlisted))
	r := b.add("a", time.Minute)
	b.send(r.Add)
	r.unanswered(t, "while the list is read again")
	b.list()
	b.Step(b.clock)
	if got := r.got(t); got.Cause != string(cause.ENIConfigMissing) || got.Transient {
		t.Errorf("%+v", got)
	}
}
