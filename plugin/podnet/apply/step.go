package apply

import "errors"

// Step is a step of Setup or Teardown.
type Step uint8

const (
	StepOpen         Step = iota + 1 // sockets
	StepDeleteStale                  // a host link of the same name, of an older sandbox
	StepCreatePair                   // the veth pair
	StepAcceptRA                     // sysctls of the host link
	StepRedirects                    //
	StepForwarding                   //
	StepPodLinkUp                    // inside the pod
	StepGateway                      //
	StepDefaultRoute                 //
	StepAddress                      //
	StepNeighbour                    //
	StepHostRoute                    // on the host
	StepToPodRule                    //
	StepFromPodRule                  //
	StepVLANLink                     // teardown of a branch-ENI pod
)

// StepError is a step that failed.
type StepError struct {
	Step Step
	Err  error
}

func (e *StepError) Error() string { return e.Step.String() + ": " + e.Err.Error() }
func (e *StepError) Unwrap() error { return e.Err }

func failed(step Step, err error) error { return &StepError{Step: step, Err: err} }

// FailedStep is the step at which err arose, 0 when it is not known.
func FailedStep(err error) Step {
	var e *StepError
	if errors.As(err, &e) {
		return e.Step
	}
	return 0
}

func (s Step) String() string {
	switch s {
	case StepOpen:
		return "open sockets"
	case StepDeleteStale:
		return "delete old host link"
	case StepCreatePair:
		return "create veth pair"
	case StepAcceptRA:
		return "set accept_ra"
	case StepRedirects:
		return "set accept_redirects"
	case StepForwarding:
		return "set forwarding"
	case StepPodLinkUp:
		return "set pod link up"
	case StepGateway:
		return "add gateway route"
	case StepDefaultRoute:
		return "add default route"
	case StepAddress:
		return "add pod address"
	case StepNeighbour:
		return "add gateway neighbour"
	case StepHostRoute:
		return "add host route"
	case StepToPodRule:
		return "change rule to pod"
	case StepFromPodRule:
		return "change rule from pod"
	case StepVLANLink:
		return "delete VLAN link"
	}
	return "unknown step"
}
