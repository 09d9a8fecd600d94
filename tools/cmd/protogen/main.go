// Command protogen compiles .proto files in pure Go and runs protoc-gen-go and
// protoc-gen-go-grpc on them, so that regenerating the code needs no protoc.
//
// Usage: protogen FILE.proto...   (in the directory of the files; the two plugins are looked
// up beside this binary, then on PATH). Output goes beside the sources.
package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"

	"github.com/bufbuild/protocompile"
	"github.com/bufbuild/protocompile/linker"
	"github.com/bufbuild/protocompile/protoutil"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/descriptorpb"
	"google.golang.org/protobuf/types/pluginpb"
)

func main() {
	if err := run(context.Background(), os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "protogen:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, files []string) error {
	compiler := protocompile.Compiler{
		Resolver:       protocompile.WithStandardImports(&protocompile.SourceResolver{}),
		SourceInfoMode: protocompile.SourceInfoStandard, // comments become Go comments
	}
	linked, err := compiler.Compile(ctx, files...)
	if err != nil {
		return fmt.Errorf("compile: %w", err)
	}
	req := &pluginpb.CodeGeneratorRequest{FileToGenerate: files}
	seen := map[string]bool{}
	for _, f := range linked {
		addWithImports(req, seen, f)
	}
	for _, plugin := range []string{"protoc-gen-go", "protoc-gen-go-grpc"} {
		req.Parameter = proto.String("paths=source_relative")
		if err := generate(ctx, plugin, req); err != nil {
			return fmt.Errorf("run %s: %w", plugin, err)
		}
	}
	return nil
}

// addWithImports appends a file after all of its imports, as plugins expect.
func addWithImports(req *pluginpb.CodeGeneratorRequest, seen map[string]bool, f protoreflect.FileDescriptor) {
	if seen[f.Path()] {
		return
	}
	seen[f.Path()] = true
	for i := range f.Imports().Len() {
		addWithImports(req, seen, f.Imports().Get(i).FileDescriptor)
	}
	req.ProtoFile = append(req.ProtoFile, descriptor(f))
}

func descriptor(f protoreflect.FileDescriptor) *descriptorpb.FileDescriptorProto {
	if r, ok := f.(linker.Result); ok {
		return r.FileDescriptorProto()
	}
	return protoutil.ProtoFromFileDescriptor(f)
}

func generate(ctx context.Context, plugin string, req *pluginpb.CodeGeneratorRequest) error {
	in, err := proto.Marshal(req)
	if err != nil {
		return fmt.Errorf("encode request: %w", err)
	}
	cmd := exec.CommandContext(ctx, find(plugin))
	cmd.Stdin = bytes.NewReader(in)
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		return err
	}
	var resp pluginpb.CodeGeneratorResponse
	if err := proto.Unmarshal(out, &resp); err != nil {
		return fmt.Errorf("decode answer: %w", err)
	}
	if resp.Error != nil {
		return fmt.Errorf("plugin says: %s", resp.GetError())
	}
	for _, f := range resp.File {
		if err := os.WriteFile(f.GetName(), []byte(f.GetContent()), 0o644); err != nil {
			return fmt.Errorf("write generated file: %w", err)
		}
	}
	return nil
}

func find(plugin string) string {
	if self, err := os.Executable(); err == nil {
		beside := filepath.Join(filepath.Dir(self), plugin)
		if _, err := os.Stat(beside); err == nil {
			return beside
		}
	}
	return plugin
}
