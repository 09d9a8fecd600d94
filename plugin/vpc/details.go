package vpc

import (
	"errors"
	"strings"

	"golang.org/x/sys/unix"

	"cnictl/daemon/api/cause"
	"cnictl/daemon/api/cniwire"
	"cnictl/plugin/podnet/apply"
	"cnictl/plugin/skel"
)

// The details of errors: what is wrong, where, and what is accepted or where to look. The
// messages cannot say this, because they are upstream's. Runtimes print both in one line,
// "message; details".

func quoted(s string) string { return skel.Quoted(s) }

// settingDetails describes an invalid value in the network configuration; empty for any
// other error.
func settingDetails(err error) string { return skel.SettingDetails(err) }

// argsDetails describes a CNI_ARGS that parseArgs refuses.
func argsDetails(args string) string {
	return "CNI_ARGS is " + quoted(args) + `; accepted are pairs KEY=VALUE joined by ";" with the keys ` +
		strings.Join(argKeys[:], ", ") + ", and others with IgnoreUnknown=1"
}

// netnsDetails describes an unusable CNI_NETNS; empty for any other error.
func netnsDetails(err error) string {
	var bad *apply.NetnsError
	if !errors.As(err, &bad) {
		return ""
	}
	what := "CNI_NETNS is " + quoted(bad.Path) + ", "
	switch {
	case bad.Err == nil:
		what += "which is not a network namespace"
	case errors.Is(bad.Err, unix.ENOENT):
		what += "which does not exist: the sandbox was removed meanwhile, or it is not a path on the host"
	default:
		what += "which cannot be opened"
	}
	return what + "; accepted is the path of a network namespace, such as /run/netns/<name>"
}

// netnsCause is why a sandbox's namespace cannot be used.
func netnsCause(err error) cause.Code {
	var bad *apply.NetnsError
	switch {
	case errors.As(err, &bad) && bad.Err == nil:
		return cause.InvalidRequest
	case errors.As(err, &bad) && errors.Is(bad.Err, unix.ENOENT):
		return cause.NetnsGone
	}
	return cause.PodNetworkSetup
}

// callCause is why a call to the daemon failed.
func callCause(err error) cause.Code {
	var refused *cniwire.CallError
	switch {
	case errors.Is(err, cniwire.ErrMalformed), errors.Is(err, cniwire.ErrFrameTooLarge):
		return cause.DaemonMismatch
	case errors.As(err, &refused) && refused.Answered:
		return cause.DaemonMismatch // upstream's daemon reports no other cause
	}
	return cause.DaemonUnreachable
}

// callDetails describes a failed call to the daemon, because the message names upstream's
// socket.
func callDetails(socket string, err error) string {
	what := "ipamd ended the connection on " + socket + " before it answered"
	var down *dialError
	var refused *cniwire.CallError
	var helper *helperError
	switch {
	case errors.As(err, &helper):
		what = "there is no daemon of this release, and aws-cni can ask upstream's only through " + helperProgram + ", " + helperOrigin
	case errors.As(err, &refused):
		what = "there is no daemon of this release, and upstream's daemon answers with an error on its socket"
	case errors.As(err, &down) && errors.Is(down.errno, unix.ENOENT):
		what = "there is no " + socket + ": ipamd has not started since the node booted"
	case errors.As(err, &down) && errors.Is(down.errno, unix.ECONNREFUSED):
		what = "nothing listens on " + socket + ": ipamd has stopped or is still starting"
	case errors.As(err, &down):
		what = "cannot connect to " + socket
	case errors.Is(err, errDeadline), errors.Is(err, unix.EAGAIN):
		what = "ipamd accepted the request on " + socket + " and did not answer in time"
	case errors.Is(err, cniwire.ErrMalformed), errors.Is(err, cniwire.ErrFrameTooLarge):
		what = "what answers on " + socket + " speaks another protocol: aws-cni and the aws-node image should be of one version"
	}
	return what + " (upstream's socket is " + cniwire.GRPCSocket + "); look at the aws-node pod of this node: " +
		"kubectl -n kube-system get pods -l k8s-app=aws-node -o wide, and /var/log/aws-routed-eni/ipamd.log"
}
