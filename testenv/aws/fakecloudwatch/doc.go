// Package fakecloudwatch implements Amazon CloudWatch's PutMetricData as an HTTP server, close
// enough for aws-sdk-go-v2: Smithy's RPC v2 protocol over CBOR, request compression and
// errors in the service's format.
//
// It keeps the data it accepts (Server.Data) and is strict: other operations, protocols or
// members, unsigned requests and data that CloudWatch would refuse get the service's errors
// and are recorded in Server.Violations, which a test should find empty.
// Server.SetFault makes requests fail or hang.
package fakecloudwatch
