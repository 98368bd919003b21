// Runs one command of the program in this process, as its command line does. A process of its own costs a second of
// processor time. Its output is returned; with variables, they are in the environment while it runs.
import { NodeServices } from "@effect/platform-node"
import { Console, Effect, Exit, Layer } from "effect"
import { Command } from "effect/cli"
import process from "node:process"
import { commandTree } from "../../runtime/commandTree.ts"
import { ofAgents } from "../../runtime/operatorWords.ts"
import { presentation } from "../../runtime/presentation.ts"
import { isAsked, report } from "../../runtime/report.ts"
import { sentenceOf } from "../../runtime/sentence.ts"

interface CommandResult {
  readonly status: number
  readonly stdout: string
  readonly stderr: string
  /** Why it failed, if it did. */
  readonly sentence: string | undefined
}

/** Runs `use` with these variables, and restores the environment. */
const withVariables = <A, E, R>(variables: Readonly<Record<string, string>>, use: Effect.Effect<A, E, R>) =>
  Effect.suspend(() => {
    const earlier = Object.keys(variables).map((name) => [name, process.env[name]] as const)
    Object.assign(process.env, variables)
    const restore = Effect.sync(() => {
      for (const [name, value] of earlier)
        if (value === undefined) delete process.env[name]
        else process.env[name] = value
    })
    return Effect.ensuring(use, restore)
  })

export const runCommand = Effect.fnUntraced(function* (
  words: ReadonlyArray<string>,
  variables: Readonly<Record<string, string>> = {}
) {
  const [out, err]: [Array<string>, Array<string>] = [[], []]
  const write =
    (lines: Array<string>) =>
    (...parts: ReadonlyArray<unknown>) =>
      void lines.push(`${parts.join(" ")}\n`)
  const command = Command.runWith(commandTree, { version: "0" })(ofAgents(words)).pipe(
    Effect.tapCause((cause) => (isAsked(cause) ? Effect.void : report(cause, false))),
    Effect.provide(Layer.mergeAll(NodeServices.layer, presentation)),
    Effect.scoped
  ) as Effect.Effect<void, unknown>
  const exit = yield* withVariables(variables, command).pipe(
    Effect.provideService(Console.Console, { ...(yield* Console.Console), log: write(out), error: write(err) }),
    Effect.exit
  )
  const status = Exit.isSuccess(exit) || isAsked(exit.cause) ? 0 : 1
  const sentence = Exit.isFailure(exit) ? (sentenceOf(exit.cause) ?? "") : undefined
  return { status, stdout: out.join(""), stderr: err.join(""), sentence } satisfies CommandResult
})

/** Runs a command with `--json`. Returns its value, or its error text. */
export const runJson = (words: ReadonlyArray<string>, variables: Readonly<Record<string, string>> = {}) =>
  Effect.map(runCommand([...words, "--json"], variables), ({ sentence, status, stderr, stdout }): any =>
    status === 0 ? JSON.parse(stdout) : `${stderr}${sentence ?? ""}`
  )
