package vpc

import (
	"net/netip"
	"time"

	"cnictl/daemon/api/cause"
)

var (
	ParseArgs = parseArgs
	AppendLog = appendLog
)

const LogMaxSize = logMaxSize

// ResultJSON is the result of a pod with the given facts.
func ResultJSON(version, hostLink, podLink, hash, netns, address string, table, device int) []byte {
	p := &plan{hash: hash, device: device, nics: []nic{{hostLink: hostLink, podLink: podLink, address: netip.MustParseAddr(address), table: table}}}
	return newPodResult(p, netns).JSON(version)
}

// ErrorJSON is an error as printed.
func ErrorJSON(code int, msg string, why cause.Code, details string) []byte {
	return (&cniError{code: code, msg: msg, cause: why, details: details}).JSON()
}

// Fields of podArgs.
func (a podArgs) Fields() (name, namespace, infra, uid string) {
	return a.podName, a.podNamespace, a.infraContainerID, a.podUID
}

// CallText is the message of a call that fails.
func CallText(socket string, timeout time.Duration, slow func()) string {
	c, err := dial(socket, timeout, time.Now)
	if err == nil {
		defer c.close()
		if err = c.send([]byte{0, 0, 0, 0}); err == nil {
			_, err = c.receive(slow)
		}
	}
	if err == nil {
		return ""
	}
	return callText(err)
}
