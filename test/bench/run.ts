// `npm run bench -- NAME`: runs `test/bench/NAME.ts`, which prints its figures and returns whether they reach its bar.
const name = process.argv[2] ?? ""
if (!/^[a-z-]+$/.test(name)) {
  console.log("usage: npm run bench -- NAME, where test/bench/NAME.ts exists")
  process.exitCode = 2
} else {
  const { bench } = (await import(new URL(`${name}.ts`, import.meta.url).href)) as {
    readonly bench: () => boolean | Promise<boolean>
  }
  if (!(await bench())) process.exitCode = 1
}
