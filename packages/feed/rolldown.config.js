import { dts } from "rolldown-plugin-dts";

// One file of code and one of types, with what the package needs of rooms that are published nowhere.
const bundle = {
  input: { index: "src/index.ts" },
  platform: "node",
  // Our rooms do nothing when they are imported, so what is not used of them is left out.
  treeshake: { moduleSideEffects: false },
  external: [/^node:/, "pg", /^@booking-events\/schema/],
  resolve: { conditionNames: ["@booking-events/source", "import"] },
};

export default [
  { ...bundle, output: { dir: "dist", sourcemap: true } },
  { ...bundle, plugins: [dts({ dtsOnly: true })], output: { dir: "dist" } },
];
