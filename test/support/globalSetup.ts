// Runs once per test run: starts PostgreSQL if the run asks for it, and passes its address to the test files.
import process from "node:process"
import type { TestProject } from "vitest/node"
import { startPostgresInMemory } from "./postgres.ts"

declare module "vitest" {
  interface ProvidedContext {
    readonly postgresUrl: string
  }
}

export const setup = async (project: TestProject): Promise<(() => Promise<void>) | undefined> => {
  const databases = (process.env["TOLLKEEPER_TEST_DATABASES"] ?? "pglite").split(",")
  if (!databases.includes("postgres")) {
    project.provide("postgresUrl", "")
    return undefined
  }
  const postgres = await startPostgresInMemory()
  process.stdout.write(`tests use ${postgres.description}\n`)
  project.provide("postgresUrl", postgres.url)
  return postgres.stop
}
