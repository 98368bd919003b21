// The command line of `tollkeeper start` and `tollkeeper tools`. A long-running process does not load the commands that
// run once, nor their dependencies.
import "effect/schema/SchemaJITCompiler/enable"
import { Command } from "effect/cli"
import { start, tools } from "./commands/start.ts"
import { runCommands, tollkeeper } from "./runCommands.ts"
import { version } from "./version.ts"

runCommands(Command.run(tollkeeper.pipe(Command.withSubcommands([start, tools])), { version }), true)
