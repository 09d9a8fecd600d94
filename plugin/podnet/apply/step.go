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
	StepVLANLink                     // teardown of a branch-ENI pod: its device
	StepBranchRules                  // and the rules that lead to the device's table

	StepEnableIPv6    // sysctls inside an IPv6 pod: of the link
	StepEnableIPv6Lo  //
	StepInterfaceRule // inside the pod, of an interface after the first
	StepHostAddress   // link-local, for IPv6
	StepReady         //

	StepBranchStaleRules // on the host, for a branch ENI: leftover rules
	StepOldVLAN          // a leftover device
	StepCreateVLAN       //
	StepVLANAcceptRA     // sysctls of the device
	StepVLANRedirects    //
	StepVLANForwarding   //
	StepVLANUp           //
	StepVLANGateway      //
	StepVLANDefault      //
	StepBranchRoute      // strict mode: the route to the pod in the device's table
	StepFromVLANRule     //
	StepFromVethRule     //
)

// StepError is a failed step.
type StepError struct {
	Step      Step
	Interface int // index of the interface
	Err       error
}

func (e *StepError) Error() string { return e.Step.String() + ": " + e.Err.Error() }
func (e *StepError) Unwrap() error { return e.Err }

func failed(step Step, err error) error { return &StepError{Step: step, Err: err} }

// of adds the index of the interface to a *StepError.
func of(i int, err error) error {
	var e *StepError
	if i > 0 && errors.As(err, &e) {
		e.Interface = i
	}
	return err
}

// FailedStep is the step that returned err, 0 if unknown.
func FailedStep(err error) Step {
	var e *StepError
	if errors.As(err, &e) {
		return e.Step
	}
	return 0
}

func (s Step) String() string {
	if int(s) < len(stepNames) && stepNames[s] != "" {
		return stepNames[s]
	}
	return "unknown step"
}

var stepNames = [...]string{
	StepOpen:             "open sockets",
	StepDeleteStale:      "delete old host link",
	StepCreatePair:       "create veth pair",
	StepAcceptRA:         "set accept_ra",
	StepRedirects:        "set accept_redirects",
	StepForwarding:       "set forwarding",
	StepPodLinkUp:        "set pod link up",
	StepGateway:          "add gateway route",
	StepDefaultRoute:     "add default route",
	StepAddress:          "add pod address",
	StepNeighbour:        "add gateway neighbour",
	StepHostRoute:        "add host route",
	StepToPodRule:        "change rule to pod",
	StepFromPodRule:      "change rule from pod",
	StepVLANLink:         "delete VLAN link",
	StepBranchRules:      "delete rules of the VLAN link's table",
	StepEnableIPv6:       "enable IPv6 on pod link",
	StepEnableIPv6Lo:     "enable IPv6 on the pod's lo",
	StepInterfaceRule:    "add rule of pod interface",
	StepHostAddress:      "add link-local address of host link",
	StepReady:            "wait for addresses",
	StepBranchStaleRules: "delete old rules of host link",
	StepOldVLAN:          "delete old VLAN link",
	StepCreateVLAN:       "create VLAN link",
	StepVLANAcceptRA:     "set accept_ra of VLAN link",
	StepVLANRedirects:    "set accept_redirects of VLAN link",
	StepVLANForwarding:   "set forwarding of VLAN link",
	StepVLANUp:           "set VLAN link up",
	StepVLANGateway:      "add gateway route of VLAN link",
	StepVLANDefault:      "add default route of VLAN link",
	StepBranchRoute:      "add host route in the table of the VLAN link",
	StepFromVLANRule:     "add rule from VLAN link",
	StepFromVethRule:     "add rule from host link",
}
