package inventory

import (
	"cnictl/daemon/api/cause"
	"cnictl/daemon/api/introspect"
	"cnictl/daemon/fleet"
	"cnictl/daemon/fleet/document"
	"cnictl/doctor/causes/catalogue"
)

// CauseTitle is the one-line meaning of a code; for an unknown code, the code itself.
func CauseTitle(code string) string {
	if e, ok := catalogue.Lookup(code); ok {
		return e.Title
	}
	if t := cause.Code(code).Title(); t != "" {
		return t
	}
	switch code {
	case fleet.CodeNoFreeAddress:
		return "no address is free now; the pool can still grow"
	case fleet.CodeMaxPodsOver:
		return "kubelet's max-pods allows more pods than there are addresses"
	case fleet.CodeMaxPodsUnder:
		return "kubelet's max-pods leaves addresses that can never be used"
	case fleet.CodeMaxPodsAtRisk:
		return "kubelet's max-pods counts branch ENIs, which most pods cannot use"
	case fleet.CodeConfig:
		return "settings of the daemon have problems"
	case fleet.CodeUnplaced:
		return "pods have addresses that are on no interface of the node"
	case fleet.CodeTerminating:
		return "the daemon is shutting down"
	case fleet.CodeCordoned:
		return "the node is cordoned"
	case fleet.CodeMetricsOnly:
		return "only the daemon's metrics could be read"
	case fleet.CodePartlyReadable:
		return "part of the node's data could not be read"
	}
	if document.State(code) == document.StateNoDaemon {
		return "the node needs no aws-node pod (Fargate, Windows)"
	}
	switch introspect.Reason(code) {
	case introspect.ReasonRefused:
		return "nothing listens at the daemon's address"
	case introspect.ReasonNoSocket:
		return "the daemon's socket does not exist"
	case introspect.ReasonForbidden:
		return "reading the node is not allowed"
	case introspect.ReasonTimeout:
		return "the node gave no complete answer in time"
	case introspect.ReasonCancelled:
		return "the node was not read: cancelled"
	case introspect.ReasonUnresolved:
		return "the node's host name cannot be resolved"
	case introspect.ReasonTransport:
		return "the connection to the node failed"
	case introspect.ReasonStatus, introspect.ReasonNotFound, introspect.ReasonNotServed, introspect.ReasonBadRequest:
		return "the node answers, but not with the requested data"
	case introspect.ReasonNotHTTP:
		return "the server at the node's address does not speak HTTP"
	case introspect.ReasonNotJSON, introspect.ReasonMalformed, introspect.ReasonTooLarge:
		return "the node's answer is invalid"
	case introspect.ReasonNoEndpoint:
		return "the daemon does not know the path"
	case introspect.ReasonBusy:
		return "the daemon is busy"
	case introspect.ReasonNoPod:
		return "no aws-node pod is on the node"
	case introspect.ReasonPodNotRunning:
		return "the node's aws-node pod is not running"
	case introspect.ReasonOff:
		return "introspection is off, or on a socket that cannot be reached"
	case introspect.ReasonCredential:
		return "the API server rejects the credentials"
	}
	return code
}
