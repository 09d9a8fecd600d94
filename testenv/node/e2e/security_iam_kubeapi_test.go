package e2e_test

import (
	"slices"
	"strings"

	"cnictl/testenv"
	"cnictl/testenv/aws/fakeaws"
)

// endsFor checks that the start fails and that the daemon names the missing permission.
func (m *member) endsFor(action string, env map[string]string) {
	m.c.t.Helper()
	if err := m.StartDaemon(m.env("aws-node", env)); err != nil {
		m.c.t.Fatal(err)
	}
	ctx := testenv.Context(m.c.t)
	end, err := m.DaemonEnded(ctx)
	if err != nil {
		m.c.t.Fatal(err)
	}
	if said := m.Logs()["daemon-1.out"]; end.Code != 1 || !strings.Contains(said, "IAM role needs "+action) {
		m.c.t.Errorf("status %d: %s", end.Code, said)
	}
	if n := m.refusals(action); n > 3 {
		m.c.t.Errorf("%d calls were refused", n)
	}
}

// refusals counts the member's calls that were refused because of a missing permission.
func (m *member) refusals(action string) (n int) {
	for _, call := range m.c.world.Calls() {
		if call.Caller == m.InstanceID && call.Code == "UnauthorizedOperation" && takes(call, action) {
			n++
		}
	}
	return n
}

// takes reports whether a call needs a permission: creating an ENI with tags needs two.
func takes(call fakeaws.Call, action string) bool {
	_, tagged := call.Params["TagSpecification.1.ResourceType"]
	return "ec2:"+call.Action == action || action == "ec2:CreateTags" && call.Action == "CreateNetworkInterface" && tagged
}

// endsWithInstance reports whether the instance's termination deletes all of its ENIs.
func (m *member) endsWithInstance() bool {
	return !slices.ContainsFunc(m.enis(), func(e fakeaws.ENI) bool { return !e.Attachment.DeleteOnTermination })
}
