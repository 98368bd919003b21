// Removes the guards of the status page, one at a time: when a condition is an incident, what is kept while the
// database takes nothing, how minutes become incidents, and what the page claims.
import type { Mutation } from "./Mutation.ts"

const guards = (
  file: string,
  test: string,
  list: ReadonlyArray<readonly [name: string, from: string, to: string]>
): ReadonlyArray<Mutation> =>
  list.map(([name, from, to]) => ({
    name,
    changes: [{ file: `plugins/dashboard/status/${file}`, from, to }],
    catcher: [
      "node_modules/vitest/vitest.mjs",
      "run",
      "--config",
      "test/vitest.config.ts",
      `test/plugins/dashboard/status/${test}`
    ]
  }))

export const mutations: ReadonlyArray<Mutation> = [
  ...guards("watchConditions.ts", "conditions.test.ts", [
    ["a condition of a moment is an incident", "if (now - began < condition.forSeconds * 1_000) continue", ""],
    ["an incident begins when it is certain", "let minute = from", "let minute = floor(now)"],
    ["errors of the process's whole life count", "now - at <= windowSeconds * 1_000", "now - at <= Infinity"],
    ["minutes wait without a bound", "mine.length >= waitingMax", "mine.length < 0"],
    ["a condition that ended still holds", "since.delete(condition)", ""]
  ]),
  ...guards("conditions.ts", "conditions.test.ts", [
    ["the page's bound is not the alert's", "above: 0.05", "above: 0.01"],
    ["the page's time is not the alert's", "forSeconds: 120", "forSeconds: 60"]
  ]),
  ...guards("Incidents.ts", "Incidents.test.ts", [
    [
      "what cannot be written is forgotten",
      "const minutes = watch.waiting()",
      "const minutes = watch.waiting(); watch.written(minutes)"
    ],
    ["one missing minute parts an incident", "> interval '2 minutes', true)", "> interval '1 minute', true)"],
    ["an incident that lasts has ended", "clock_timestamp() - interval '2 minutes'", "clock_timestamp()"]
  ]),
  ...guards("statusHtml.ts", "statusHtml.test.ts", [
    ["a share is rounded up to the whole", "Math.floor(value * 10_000) / 100", "value * 100"]
  ])
]
