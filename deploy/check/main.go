// Reads Compose files as Docker Compose does, with its own loader, and the Dockerfiles that they name as BuildKit does, with
// its parser and its lints, and says what is wrong with them.
//
//	go run . FILE...
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/compose-spec/compose-go/v2/cli"
	"github.com/moby/buildkit/frontend/dockerfile/instructions"
	"github.com/moby/buildkit/frontend/dockerfile/linter"
	"github.com/moby/buildkit/frontend/dockerfile/parser"
)

func main() {
	for _, file := range os.Args[1:] {
		if err := check(file); err != nil {
			fmt.Fprintf(os.Stderr, "%s: %v\n", file, err)
			os.Exit(1)
		}
	}
}

// check loads the file with every variable that it insists on set to something.
func check(file string) error {
	options, err := cli.NewProjectOptions([]string{file}, cli.WithName("check"), cli.WithEnv([]string{"COURSER_AUTH_PASSWORD=x"}))
	if err != nil {
		return err
	}
	project, err := options.LoadProject(context.Background())
	if err != nil {
		return err
	}
	for _, service := range project.Services {
		if service.Build == nil {
			continue
		}
		dockerfile := service.Build.Dockerfile
		if err := checkDockerfile(filepath.Join(service.Build.Context, dockerfile)); err != nil {
			return fmt.Errorf("service %s: %w", service.Name, err)
		}
	}
	return nil
}

func checkDockerfile(file string) error {
	input, err := os.Open(file)
	if err != nil {
		return err
	}
	defer input.Close()
	parsed, err := parser.Parse(input)
	if err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}
	var warnings []error
	for _, warning := range parsed.Warnings {
		warnings = append(warnings, fmt.Errorf("%s: %s", file, warning.Short))
	}
	warn := func(rule, _, _, text string, where []parser.Range) {
		warnings = append(warnings, fmt.Errorf("%s:%d: %s (%s)", file, where[0].Start.Line, text, rule))
	}
	if _, _, err := instructions.Parse(parsed.AST, linter.New(&linter.Config{Warn: warn})); err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}
	return errors.Join(warnings...)
}
