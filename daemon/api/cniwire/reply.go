package cniwire

import "strconv"

const (
	repSuccess         field = 1
	repAllocation      field = 2
	repUseExternalSNAT field = 3
	repVPCv4CIDR       field = 4
	repVPCv6CIDR       field = 5
	repPodVLANID       field = 6
	repPodENIMAC       field = 7
	repPodENISubnetGW  field = 8
	repParentIfIndex   field = 9
	repPolicyMode      field = 10
	repCause           field = 11
	repDetail          field = 12
	repTransient       field = 13
	repUnknown         field = 14
)

const (
	errAnswered field = 1
	errText     field = 2
)

const (
	allocIPv4       field = 1
	allocIPv6       field = 2
	allocDevice     field = 3
	allocRouteTable field = 4
)

// AppendAddReply appends the framed reply to b.
func AppendAddReply(b []byte, r *AddReply) []byte {
	b, start := beginFrame(b, kindAddReply)
	b = appendBool(b, repSuccess, r.Success)
	b = appendAllocations(b, r.Allocations)
	b = appendBool(b, repUseExternalSNAT, r.UseExternalSNAT)
	b = appendStrings(b, repVPCv4CIDR, r.VPCv4CIDRs)
	b = appendStrings(b, repVPCv6CIDR, r.VPCv6CIDRs)
	b = appendInt32(b, repPodVLANID, r.PodVLANID)
	b = appendString(b, repPodENIMAC, r.PodENIMAC)
	b = appendString(b, repPodENISubnetGW, r.PodENISubnetGW)
	b = appendInt32(b, repParentIfIndex, r.ParentIfIndex)
	b = appendString(b, repPolicyMode, r.NetworkPolicyMode)
	b = appendString(b, repCause, r.Cause)
	b = appendString(b, repDetail, r.Detail)
	b = appendBool(b, repTransient, r.Transient)
	return endFrame(b, start)
}

// AppendDelReply appends the framed reply to b.
func AppendDelReply(b []byte, r *DelReply) []byte {
	b, start := beginFrame(b, kindDelReply)
	b = appendBool(b, repSuccess, r.Success)
	b = appendBool(b, repUnknown, r.Unknown)
	b = appendAllocations(b, r.Allocations)
	b = appendInt32(b, repPodVLANID, r.PodVLANID)
	b = appendString(b, repPolicyMode, r.NetworkPolicyMode)
	b = appendString(b, repCause, r.Cause)
	b = appendString(b, repDetail, r.Detail)
	return endFrame(b, start)
}

// AppendPolicyReply appends the framed reply to b.
func AppendPolicyReply(b []byte, r *PolicyReply) []byte {
	b, start := beginFrame(b, kindPolicyReply)
	b = appendBool(b, repSuccess, r.Success)
	b = appendString(b, repCause, r.Cause)
	b = appendString(b, repDetail, r.Detail)
	return endFrame(b, start)
}

// AppendCallError appends the framed error to b.
func AppendCallError(b []byte, e *CallError) []byte {
	b, start := beginFrame(b, kindCallError)
	b = appendBool(b, errAnswered, e.Answered)
	b = appendString(b, errText, e.Text)
	return endFrame(b, start)
}

func appendAllocations(b []byte, list []Allocation) []byte {
	for i := range list {
		// The largest allocation is far below this: two addresses, two integers.
		var stack [128]byte
		body := appendString(stack[:0], allocIPv4, list[i].IPv4)
		body = appendString(body, allocIPv6, list[i].IPv6)
		body = appendInt32(body, allocDevice, list[i].Device)
		body = appendInt32(body, allocRouteTable, list[i].RouteTable)
		b = appendText(b, repAllocation, body)
	}
	return b
}

// DecodeAddReply reads a frame as returned by ReadFrame. The result does not alias
// the frame.
func DecodeAddReply(frame []byte) (*AddReply, error) {
	body, err := replyBody(frame, kindAddReply, "ADD reply")
	if err != nil {
		return nil, err
	}
	out := &AddReply{}
	r := reader{rest: body, what: "ADD reply"}
	for r.next() {
		switch r.field {
		case repSuccess:
			out.Success = r.bool()
		case repAllocation:
			out.Allocations = append(out.Allocations, r.allocation())
		case repUseExternalSNAT:
			out.UseExternalSNAT = r.bool()
		case repVPCv4CIDR:
			out.VPCv4CIDRs = append(out.VPCv4CIDRs, r.text())
		case repVPCv6CIDR:
			out.VPCv6CIDRs = append(out.VPCv6CIDRs, r.text())
		case repPodVLANID:
			out.PodVLANID = r.int32()
		case repPodENIMAC:
			out.PodENIMAC = r.text()
		case repPodENISubnetGW:
			out.PodENISubnetGW = r.text()
		case repParentIfIndex:
			out.ParentIfIndex = r.int32()
		case repPolicyMode:
			out.NetworkPolicyMode = r.text()
		case repCause:
			out.Cause = r.text()
		case repDetail:
			out.Detail = r.text()
		case repTransient:
			out.Transient = r.bool()
		}
	}
	if r.err != nil {
		return nil, r.err
	}
	return out, nil
}

// DecodeDelReply reads a frame as returned by ReadFrame. The result does not alias
// the frame.
func DecodeDelReply(frame []byte) (*DelReply, error) {
	body, err := replyBody(frame, kindDelReply, "DEL reply")
	if err != nil {
		return nil, err
	}
	out := &DelReply{}
	r := reader{rest: body, what: "DEL reply"}
	for r.next() {
		switch r.field {
		case repSuccess:
			out.Success = r.bool()
		case repUnknown:
			out.Unknown = r.bool()
		case repAllocation:
			out.Allocations = append(out.Allocations, r.allocation())
		case repPodVLANID:
			out.PodVLANID = r.int32()
		case repPolicyMode:
			out.NetworkPolicyMode = r.text()
		case repCause:
			out.Cause = r.text()
		case repDetail:
			out.Detail = r.text()
		}
	}
	if r.err != nil {
		return nil, r.err
	}
	return out, nil
}

// DecodePolicyReply reads a frame as returned by ReadFrame.
func DecodePolicyReply(frame []byte) (*PolicyReply, error) {
	body, err := replyBody(frame, kindPolicyReply, "policy reply")
	if err != nil {
		return nil, err
	}
	out := &PolicyReply{}
	r := reader{rest: body, what: "policy reply"}
	for r.next() {
		switch r.field {
		case repSuccess:
			out.Success = r.bool()
		case repCause:
			out.Cause = r.text()
		case repDetail:
			out.Detail = r.text()
		}
	}
	if r.err != nil {
		return nil, r.err
	}
	return out, nil
}

// DecodeCallError reads a frame as returned by ReadFrame. It returns nil for any other
// message.
func DecodeCallError(frame []byte) (*CallError, error) {
	if len(frame) == 0 || kind(frame[0]) != kindCallError {
		return nil, nil
	}
	out := &CallError{}
	r := reader{rest: frame[1:], what: "call error"}
	for r.next() {
		switch r.field {
		case errAnswered:
			out.Answered = r.bool()
		case errText:
			out.Text = r.text()
		}
	}
	if r.err != nil {
		return nil, r.err
	}
	return out, nil
}

// allocation reads the current field as an Allocation.
func (r *reader) allocation() Allocation {
	var out Allocation
	in := reader{rest: r.value, what: "an allocation"}
	for in.next() {
		switch in.field {
		case allocIPv4:
			out.IPv4 = in.text()
		case allocIPv6:
			out.IPv6 = in.text()
		case allocDevice:
			out.Device = in.int32()
		case allocRouteTable:
			out.RouteTable = in.int32()
		}
	}
	if in.err != nil && r.err == nil {
		r.err = in.err
	}
	return out
}

func replyBody(frame []byte, want kind, what string) ([]byte, error) {
	if len(frame) == 0 {
		return nil, malformed("empty frame")
	}
	if kind(frame[0]) != want {
		return nil, malformed("kind " + strconv.Itoa(int(frame[0])) + " is no " + what)
	}
	return frame[1:], nil
}
