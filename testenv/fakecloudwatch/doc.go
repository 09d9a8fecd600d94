// Package fakecloudwatch is Amazon CloudWatch's PutMetricData as an HTTP server, close
// enough for aws-sdk-go-v2: Smithy's RPC v2 protocol over CBOR, request compression and
// errors as the service writes them.
//
// It keeps what it takes (Server.Data) and is strict: another operation, protocol or
// member, an unsigned request and data that CloudWatch would refuse are answered with
// its errors and recorded in Server.Violations, which a test should find empty.
// Server.SetFault lets requests fail, wait, or be carried out without an answer.
package fakecloudwatch
