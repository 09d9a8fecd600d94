package vpc

import (
	"errors"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"cnictl/daemon/api/cniwire"
	"cnictl/plugin/rpcclient"
)

// DefaultPolicySocket is where the network policy agent listens.
const DefaultPolicySocket = "/var/run/aws-node/npa.sock"

// Upstream's daemon, which a node may have while it is being updated, has no lean
// socket and speaks gRPC alone; and it leaves the call of the policy agent to the plugin.

// policyDial is how long an agent that is not there is looked for.
const policyDial = 2 * time.Second

// legacyInstead reports whether upstream's daemon is to be asked after a failure
// of the lean socket: nobody listens there.
func (c *command) legacyInstead(err error) bool {
	var down *dialError
	return errors.As(err, &down) && (errors.Is(down.errno, unix.ENOENT) || errors.Is(down.errno, unix.ECONNREFUSED)) &&
		exists(c.LegacySocket)
}

func exists(path string) bool {
	var st unix.Stat_t
	return unix.Stat(path, &st) == nil
}

// legacy makes one call of upstream's daemon. Where there is none either, the
// error is that of the lean socket. Such a daemon refuses clients of other releases,
// whose wire is the same: it is asked again in the name of its own.
func legacy[T any](c *command, leanErr error, version *string, call func() (T, error)) (T, error) {
	reply, err := call()
	if own, refused := wantedVersion(err); refused {
		*version = own
		reply, err = call()
	}
	var nobody *rpcclient.DialError
	if errors.As(err, &nobody) {
		return reply, leanErr
	}
	c.legacy = true
	c.log.Debug("Asked upstream's daemon: " + c.LegacySocket)
	return reply, err
}

// wantedVersion is the release in `wrong client version "<c>" (!= "<s>")`.
func wantedVersion(err error) (string, bool) {
	var refused *rpcclient.StatusError
	if !errors.As(err, &refused) || !strings.HasPrefix(refused.Message, "wrong client version ") {
		return "", false
	}
	_, rest, _ := strings.Cut(refused.Message, `(!= "`)
	return strings.CutSuffix(rest, `")`)
}

func (c *command) legacyAdd(leanErr error, r cniwire.AddRequest) (*cniwire.AddReply, error) {
	return legacy(c, leanErr, &r.ClientVersion, func() (*cniwire.AddReply, error) {
		return rpcclient.AddNetwork(c.LegacySocket, addDeadline, &r)
	})
}

func (c *command) legacyDel(leanErr error, timeout time.Duration, r cniwire.DelRequest) (*cniwire.DelReply, error) {
	return legacy(c, leanErr, &r.ClientVersion, func() (*cniwire.DelReply, error) {
		return rpcclient.DelNetwork(c.LegacySocket, timeout, &r)
	})
}
